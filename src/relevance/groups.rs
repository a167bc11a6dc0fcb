//! Many documents sorted into small groups (specification, section 7, COMPACT): by task, then by meaning.
//!
//! A task's documents that are too many for one group are cut in two across the direction in which they differ most,
//! and so on; where the cut falls within the middle third, the widest gap decides. So groups are neither tiny nor
//! larger than asked, a hundred thousand documents take seconds, and the same documents give the same groups.

use crate::relevance::lexical::Document;
use crate::relevance::tokenize::Tokenizer;
use crate::relevance::vectors::Vector;
use crate::relevance::words::{Stems, is_empty_word};

/// A document to be grouped: its task, as a number that equal tasks share (0: none), and where it points.
#[derive(Debug)]
pub struct Grouped<'a> {
    /// Its task's number.
    pub task: u32,
    /// Where its text points; of the same model for all.
    pub direction: &'a Vector,
}

/// Tells where texts point by their words alone, where no model tells it by their meaning: each word in a direction of
/// its own, as far as there are that many.
pub struct WordDirections {
    tokenizer: Tokenizer,
    stems: Stems,
}

/// Values of such a direction.
const WORD_DIMENSIONS: usize = 256;

impl Default for WordDirections {
    fn default() -> Self {
        Self { tokenizer: Tokenizer::default(), stems: Stems::new() }
    }
}

impl WordDirections {
    /// Where a document points; nowhere if it has no word that says anything.
    pub fn of(&mut self, doc: &Document<'_>) -> Vector {
        let mut values = [0.0f32; WORD_DIMENSIONS];
        let Self { tokenizer, stems } = self;
        for text in [doc.content, doc.question.unwrap_or_default(), doc.purpose] {
            tokenizer.each(text, &mut |word| {
                if !is_empty_word(word.text) {
                    let hash = blake3::hash(stems.stem(word.text).as_bytes());
                    let [at, sign, ..] = hash.as_bytes();
                    values[usize::from(*at)] += if sign & 1 == 0 { 1.0 } else { -1.0 };
                }
            });
        }
        Vector::new(&values).unwrap_or_else(|| Vector::nowhere(WORD_DIMENSIONS))
    }
}

/// Documents alone in their task that are each brought to the nearest group; more of them make groups of their own.
const LONE_MAX: usize = 256;

/// Passes that bring the axis of a cut into line with the two halves.
const PASSES: usize = 2;

/// Sums kept apart, so that a processor can add several at a time and all get the same.
const LANES: usize = 8;

/// Sorts documents, given in order of time, into groups of at most `most` (at least 3), each in that order; the first documents
/// come in the first group. One that is alone in its task joins the nearest group, which then may have up to `crowded`.
#[must_use]
pub fn groups(documents: &[Grouped<'_>], most: usize, crowded: usize) -> Vec<Vec<usize>> {
    let mut by_task: Vec<usize> = (0..documents.len()).collect();
    by_task.sort_by_key(|at| documents[*at].task);
    let (mut groups, mut lone) = (Vec::new(), Vec::new());
    for of_task in by_task.chunk_by(|a, b| documents[*a].task == documents[*b].task) {
        match of_task {
            [one] => lone.push(*one),
            many => split(documents, many.to_vec(), most.max(3), &mut groups),
        }
    }
    lone.sort_unstable();
    if groups.is_empty() || lone.len() > LONE_MAX {
        split(documents, lone, most.max(3), &mut groups);
    } else {
        let centres: Vec<Vec<f32>> = groups.iter().map(|group| centre(documents, group)).collect();
        for one in lone {
            let near = |at: &usize| dot(documents[one].direction, &centres[*at]);
            let open = (0..groups.len()).filter(|at| groups[*at].len() < crowded);
            match open.max_by(|a, b| near(a).total_cmp(&near(b)).then(b.cmp(a))) {
                Some(nearest) => groups[nearest].push(one),
                None => groups.push(vec![one]),
            }
        }
    }
    groups.iter_mut().for_each(|group| group.sort_unstable());
    groups.sort_unstable();
    groups
}

/// The group, other than itself, that a group is nearest to among those that `may` take it.
#[must_use]
pub fn nearest(
    documents: &[Grouped<'_>],
    groups: &[Vec<usize>],
    group: usize,
    may: impl Fn(usize) -> bool,
) -> Option<usize> {
    let own = centre(documents, &groups[group]);
    let task = |group: &[usize]| documents[group[0]].task;
    let near = |at: usize| {
        let close: f32 = groups[at].iter().map(|one| dot(documents[*one].direction, &own)).sum();
        let same_task = f32::from(u8::from(task(&groups[at]) == task(&groups[group])));
        same_task + close / groups[at].len() as f32
    };
    let others = (0..groups.len()).filter(|at| *at != group && may(*at));
    others.max_by(|a, b| near(*a).total_cmp(&near(*b)).then(b.cmp(a)))
}

fn split(documents: &[Grouped<'_>], all: Vec<usize>, most: usize, groups: &mut Vec<Vec<usize>>) {
    let mut waiting = vec![all];
    while let Some(group) = waiting.pop() {
        if group.len() > most {
            let (one, other) = halves(documents, group);
            waiting.extend([other, one]);
        } else if !group.is_empty() {
            groups.push(group);
        }
    }
}

/// Two halves, neither smaller than a third.
fn halves(documents: &[Grouped<'_>], group: Vec<usize>) -> (Vec<usize>, Vec<usize>) {
    let farthest = |from: &[f32]| {
        let near = |at: &usize| dot(documents[*at].direction, from);
        *group.iter().min_by(|a, b| near(a).total_cmp(&near(b)).then(a.cmp(b))).expect("a group has members")
    };
    let a = farthest(&centre(documents, &group));
    let b = farthest(&centre(documents, &[a]));
    let mut axis = difference(&centre(documents, &[a]), &centre(documents, &[b]));
    let mut ordered = projected(documents, &group, &axis);
    for _ in 0..PASSES {
        let of = |half: &[(f32, usize)]| centre(documents, &half.iter().map(|one| one.1).collect::<Vec<_>>());
        let (low, high) = ordered.split_at(ordered.len() / 2);
        axis = difference(&of(high), &of(low));
        ordered = projected(documents, &group, &axis);
    }
    let count = ordered.len();
    let middle = count / 2;
    let gap = |cut: &usize| ordered[*cut].0 - ordered[*cut - 1].0;
    let cuts = count.div_ceil(3)..=count - count.div_ceil(3);
    let cut = cuts.max_by(|a, b| gap(a).total_cmp(&gap(b)).then(b.abs_diff(middle).cmp(&a.abs_diff(middle))));
    let (low, high) = ordered.split_at(cut.unwrap_or(middle));
    let members = |half: &[(f32, usize)]| half.iter().map(|one| one.1).collect();
    (members(low), members(high))
}

/// The members along an axis.
fn projected(documents: &[Grouped<'_>], group: &[usize], axis: &[f32]) -> Vec<(f32, usize)> {
    let mut all: Vec<_> = group.iter().map(|at| (dot(documents[*at].direction, axis), *at)).collect();
    all.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    all
}

fn difference(a: &[f32], b: &[f32]) -> Vec<f32> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

/// The middle of some documents' directions.
fn centre(documents: &[Grouped<'_>], group: &[usize]) -> Vec<f32> {
    let dimensions = group.first().map_or(0, |at| documents[*at].direction.steps.len());
    let mut sum = vec![0.0; dimensions];
    for at in group {
        let Vector { scale, steps } = documents[*at].direction;
        sum.iter_mut().zip(steps).for_each(|(sum, step)| *sum += f32::from(*step) * scale);
    }
    let share = 1.0 / group.len().max(1) as f32;
    sum.iter_mut().for_each(|value| *value *= share);
    sum
}

fn dot(direction: &Vector, axis: &[f32]) -> f32 {
    let mut sums = [0.0f32; LANES];
    for (steps, values) in direction.steps.chunks(LANES).zip(axis.chunks(LANES)) {
        for ((sum, step), value) in sums.iter_mut().zip(steps).zip(values) {
            *sum += f32::from(*step) * value;
        }
    }
    sums.iter().sum::<f32>() * direction.scale
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn grouped(documents: &[(u32, Vector)], most: usize) -> Vec<Vec<usize>> {
        let documents: Vec<_> =
            documents.iter().map(|(task, direction)| Grouped { task: *task, direction }).collect();
        groups(&documents, most, 2 * most)
    }

    fn pointing(x: f32, y: f32) -> Vector {
        Vector::new(&[x, y, 0.1]).unwrap()
    }

    #[test]
    fn tasks_are_kept_apart_and_meanings_within_them() {
        let east = |task| (task, pointing(1.0, 0.0));
        let north = |task| (task, pointing(0.0, 1.0));
        let documents = [east(1), north(1), east(2), east(1), north(1), east(2), north(1), east(1)];
        assert_eq!(grouped(&documents, 8), [vec![0, 1, 3, 4, 6, 7], vec![2, 5]]);
        assert_eq!(grouped(&documents, 3), [vec![0, 3, 7], vec![1, 4, 6], vec![2, 5]]);
    }

    #[test]
    fn who_is_alone_joins_the_nearest_group_and_is_alone_only_where_there_is_none() {
        let documents = [
            (1, pointing(1.0, 0.0)),
            (1, pointing(1.0, 0.1)),
            (2, pointing(0.0, 1.0)),
            (2, pointing(0.1, 1.0)),
            (3, pointing(0.2, 0.9)),
        ];
        assert_eq!(grouped(&documents, 4), [vec![0, 1], vec![2, 3, 4]]);
        assert_eq!(grouped(&documents[4..], 4), [vec![0]]);
        let strangers = [(1, pointing(1.0, 0.0)), (2, pointing(0.0, 1.0)), (3, pointing(0.5, 0.5))];
        assert_eq!(grouped(&strangers, 4), [vec![0, 1, 2]]);
    }

    #[test]
    fn documents_that_all_say_the_same_are_cut_all_the_same() {
        let same = vec![(0, Vector::nowhere(3)); 100];
        let found = grouped(&same, 24);
        assert!(found.iter().all(|group| (8..=24).contains(&group.len())), "{found:?}");
        assert_eq!(found.concat().len(), 100);
    }

    proptest! {
        #[test]
        fn everyone_is_in_one_group_and_no_group_is_too_large(
            documents in prop::collection::vec((0..5u32, (-1.0..1.0f32, -1.0..1.0f32)), 1..120),
            most in 3..30usize,
        ) {
            let documents: Vec<_> =
                documents.into_iter().map(|(task, (x, y))| (task, pointing(x, y))).collect();
            let found = grouped(&documents, most);
            let mut all = found.concat();
            all.sort_unstable();
            prop_assert_eq!(all, (0..documents.len()).collect::<Vec<_>>());
            prop_assert!(found.iter().all(|group| group.len() <= 2 * most && group.is_sorted()));
            if documents.len() > 1 {
                let alone = found.iter().filter(|group| group.len() == 1).count();
                prop_assert_eq!(alone, 0, "{:?}", found);
            }
        }
    }
}

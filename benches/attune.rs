//! ATTUNE's choice in process, on one core: how long the best 10 of many documents take, and how many of the exact
//! best are among them. Two kinds of texts: of many topics in English words, and made of made-up words as unevenly
//! frequent as in a language, where nearly every need has words that nearly every document has.
//!
//! `cargo bench --bench attune -- [documents] [needs]`

use std::hint::black_box;
use std::time::{Duration, Instant};

use akashik_hub::relevance::{
    Candidate, Document, Index, Kind, Need, Pool, Ranked, Serves, Web, choose, rank,
};
use cpu_time::ThreadTime;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// Every document, alike in all but its text.
struct Everything(u32);

impl Pool for Everything {
    fn first(&self) -> u32 {
        0
    }
    fn candidate(&self, number: u32) -> Option<Candidate> {
        let epoch = u64::from(number);
        Some(Candidate { number, serves: Serves::Others, kind: Kind::Finding, epoch })
    }
    fn all(&self) -> impl Iterator<Item = Candidate> {
        (0..self.0).filter_map(|number| self.candidate(number))
    }
    fn epoch(&self, document: u32) -> u64 {
        u64::from(document)
    }
}

/// Declared relations: every document is tied to the next of each of four strides.
#[derive(Debug)]
struct Ties(u32);

impl Web for Ties {
    fn each_tied(&self, document: u32, each: &mut dyn FnMut(u32)) {
        for stride in [1, 77, 1_234, 54_321].map(|stride| stride % self.0) {
            each((document + stride) % self.0);
            each((document + self.0 - stride) % self.0);
        }
    }

    fn in_words(&self, _: u32, other: u32) -> Option<String> {
        Some(format!("supports {other}"))
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    let documents: Option<u32> = arguments.next().and_then(|text| text.parse().ok());
    let needs: usize = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(200);
    for count in documents.map_or_else(|| vec![10_000, 100_000, 1_000_000], |one| vec![one]) {
        for (name, texts) in [("topics", Texts::topics()), ("made up", Texts::made_up())] {
            measure(name, &texts, count, needs);
        }
    }
}

fn measure(name: &str, texts: &Texts, count: u32, needs: usize) {
    let mut rng = SmallRng::seed_from_u64(11);
    let mut index = Index::new();
    let began = Instant::now();
    for number in 0..count {
        let (content, author) = (texts.document(&mut rng), format!("agent-{}", number % 50));
        index.push(&Document {
            content: &content,
            purpose: "Keep for the team",
            question: None,
            author: &author,
            role: ["analyst", "engineer", "designer"][number as usize % 3],
            session: None,
        });
    }
    let entering = began.elapsed().as_secs_f64() / f64::from(count) * 1e6;
    let (mut times, mut exact_times, mut found, mut wanted) = (Vec::new(), Vec::new(), 0, 0);
    let (ties, mut tied_times) = (Ties(count), Vec::new());
    for asked in 0..needs {
        let hint = texts.need(&mut rng);
        let need = Need {
            warm: 0,
            hint: Some(&hint),
            role: "analyst",
            interests: vec![],
            now: u64::from(count) + 10,
            horizon: count,
            recency_weight: None,
            meaning: true,
            direction: None,
            task: None,
            web: None,
            context: vec![],
            threshold: 0.0,
            take: 10,
        };
        let began = ThreadTime::now();
        let fast = black_box(choose(&index, &need, &Everything(count)).best);
        times.push(began.elapsed());
        let tied = Need { web: Some(&ties), context: vec![7, 77, 777], ..need.clone() };
        let began = ThreadTime::now();
        black_box(choose(&index, &tied, &Everything(count)).best);
        tied_times.push(began.elapsed());
        // The exact scan takes its time: a part of the needs will do.
        if asked % 10 == 0 {
            let began = ThreadTime::now();
            let exact = rank(&index, &need, Everything(count).all()).best;
            exact_times.push(began.elapsed());
            let is_in = |one: &&Ranked| exact.iter().any(|other| other.number == one.number);
            found += fast.iter().filter(is_in).count();
            wanted += exact.len();
        }
    }
    let at = |times: &mut Vec<Duration>, share: f64| {
        times.sort_unstable();
        milliseconds(times[((times.len() - 1) as f64 * share) as usize])
    };
    println!(
        "{count:>8} documents, {name:>7}: p50 {:>6.2} ms of CPU, p99 {:>6.2}; with relations {:>6.2}; exact scan {:>6.2}; recall@10 {:.3} of it; \
         {entering:.1} µs to enter one, {} bytes each",
        at(&mut times, 0.5),
        at(&mut times, 0.99),
        at(&mut tied_times, 0.5),
        at(&mut exact_times, 0.5),
        f64::from(found as u32) / f64::from(wanted as u32),
        index.memory_bytes() / count as usize,
    );
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Where texts come from.
struct Texts {
    /// By topic, its words; the last ones are everybody's.
    topics: Vec<Vec<String>>,
    /// How likely a word of a document is one of its topic's.
    on_topic: f64,
    words: usize,
}

/// Words of some subjects, from which topics are mixed.
const SUBJECTS: &[&str] = &[
    "market pricing revenue customers competitor growth segment churn forecast quarter sales discount",
    "database index query transaction replica schema migration postgres cache latency shard backup",
    "kitchen recipe oven bread butter dinner garlic vegetable soup flavor chef restaurant",
    "football match goal coach stadium league player season referee tournament defense striker",
    "hospital patient nurse doctor surgery diagnosis therapy vaccine symptom clinic dose trial",
    "airport flight passenger luggage delay runway pilot ticket airline boarding weather route",
    "court lawyer contract clause liability judge appeal evidence settlement license privacy consent",
    "school teacher student exam lesson grade homework library classroom tuition scholarship course",
    "garden flower soil seed water tree harvest compost greenhouse insect pruning shade",
    "music guitar concert melody album rhythm singer orchestra piano rehearsal studio chorus",
    "security password attack firewall encryption token vulnerability audit breach malware access patch",
    "energy solar battery turbine grid voltage fuel emission carbon storage power plant",
    "painting museum sculpture gallery canvas artist exhibition portrait sketch color frame curator",
    "train station railway ticket platform conductor track signal tunnel freight carriage schedule",
    "weather storm rain temperature humidity forecast cloud wind hurricane drought snow pressure",
    "bank loan interest mortgage credit account deposit currency inflation investor bond dividend",
];

const EVERYBODYS: &str = "team today found that this needs more work before next week because people said it should be \
    possible soon while other things remain open and nobody has checked them again";

impl Texts {
    /// Four hundred topics, each of a dozen words of two or three subjects and two words of its own.
    fn topics() -> Self {
        let mut rng = SmallRng::seed_from_u64(5);
        let subjects: Vec<Vec<&str>> = SUBJECTS.iter().map(|words| words.split(' ').collect()).collect();
        let topic = |number: usize, rng: &mut SmallRng| -> Vec<String> {
            let mixed: Vec<usize> =
                (0..rng.random_range(2..4)).map(|_| rng.random_range(0..subjects.len())).collect();
            let mut words: Vec<String> = (0..12)
                .map(|at| {
                    let subject = &subjects[mixed[at % mixed.len()]];
                    subject[rng.random_range(0..subject.len())].to_owned()
                })
                .collect();
            words.extend([format!("project{number}"), format!("client{}", number % 37)]);
            words
        };
        let mut topics: Vec<Vec<String>> = (0..400).map(|number| topic(number, &mut rng)).collect();
        topics.push(EVERYBODYS.split_whitespace().map(str::to_owned).collect());
        Self { topics, on_topic: 0.4, words: 60 }
    }

    /// Twenty thousand made-up words.
    fn made_up() -> Self {
        let syllables = [
            "ba", "de", "fi", "go", "ku", "la", "me", "ni", "po", "ru", "sa", "te", "vi", "stra", "plo",
            "tri",
        ];
        let word = |rank: usize| {
            let mut rest = rank + 16;
            let mut word = String::new();
            while rest > 0 {
                word.push_str(syllables[rest % 16]);
                rest /= 16;
            }
            word
        };
        Self { topics: vec![(0..20_000).map(word).collect()], on_topic: 0.0, words: 80 }
    }

    fn document(&self, rng: &mut SmallRng) -> String {
        let topic = self.topic(rng);
        self.text(rng, topic, self.words, self.on_topic)
    }

    fn need(&self, rng: &mut SmallRng) -> String {
        let topic = self.topic(rng);
        self.text(rng, topic, 10, (self.on_topic * 1.5).min(1.0))
    }

    fn topic(&self, rng: &mut SmallRng) -> usize {
        rng.random_range(0..self.topics.len().max(2) - 1)
    }

    fn text(&self, rng: &mut SmallRng, topic: usize, words: usize, on_topic: f64) -> String {
        let all = self.topics.last().expect("some words");
        let mut text = String::with_capacity(words * 8);
        for at in 0..words {
            if at > 0 {
                text.push(' ');
            }
            let own = &self.topics[topic];
            let word = if rng.random::<f64>() < on_topic {
                &own[rng.random_range(0..own.len())]
            } else {
                // As uneven as a language: the share of the rank decides, not the rank.
                let share = (all.len() as f64).powf(rng.random::<f64>()) - 1.0;
                &all[(share as usize).min(all.len() - 1)]
            };
            text.push_str(word);
        }
        text
    }
}

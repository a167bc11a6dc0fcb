//! What the team does: a question, findings that contradict each other, a conflict that is settled, one that the Field
//! notices by itself and one that waits for a person, a draft, an answer, a correction, a decision, and how it is accounted for.

use super::super::exit::Failure;
use super::stage::Stage;
use crate::client::{Attune, Commit, Merge, Record, Register, Replay};
use crate::protocol::RelationType::{Answers, Blocks, CausedBy, DependsOn, Elaborates, Informs};
use crate::protocol::{MemoryType, ReplayTarget, Strategy};

/// What one round is about. Figures: two estimates of growth, the corrected one, a price.
struct Market {
    name: &'static str,
    high: u32,
    low: u32,
    settled: u32,
    price: u32,
}

const MARKETS: [Market; 4] = [
    Market { name: "the Nordics", high: 23, low: 14, settled: 15, price: 9 },
    Market { name: "the Baltics", high: 31, low: 19, settled: 20, price: 6 },
    Market { name: "Iberia", high: 18, low: 11, settled: 12, price: 7 },
    Market { name: "the Low Countries", high: 16, low: 12, settled: 13, price: 11 },
];

/// Plays one round.
pub(super) async fn play(stage: &mut Stage, round: usize) -> Result<(), Failure> {
    let market = &MARKETS[round % MARKETS.len()];
    let session = format!("launch-{}", round + 1);
    let sizing = format!("task-sizing-{}", round + 1);
    let plan = format!("task-plan-{}", round + 1);
    assemble(stage, &session).await?;
    findings(stage, market, &sizing).await?;
    clash(stage, market, &sizing).await?;
    pricing(stage, market, &plan).await?;
    law(stage, market, &plan).await?;
    unnoticed(stage, market, &plan).await?;
    decision(stage, market, &plan).await
}

async fn assemble(stage: &mut Stage, session: &str) -> Result<(), Failure> {
    let researcher = || Register::as_role("market_researcher").interested_in("market growth");
    stage.join("ada", session, researcher()).await?;
    stage.join("ben", session, researcher()).await?;
    let strategist = Register::as_role("strategist").interested_in("market growth").interested_in("pricing");
    stage.join("dee", session, strategist).await?;
    let counsel = Register::as_role("counsel").interested_in("data protection");
    stage.join("fay", session, counsel).await?;
    stage.join("eli", session, Register::as_role("critic").interested_in("risk")).await
}

async fn findings(stage: &mut Stage, market: &Market, sizing: &str) -> Result<(), Failure> {
    let Market { name, high, .. } = market;
    let why = format!("Decide whether to open in {name} this spring");
    let intention = Record::new(
        MemoryType::Intention,
        format!("Open in {name} in spring if the market grows by at least 12% a year and the law allows it."),
    );
    stage.record("dee", "goal", intention.because(&why).sure(0.8, "Agreed with the board.")).await?;
    let question =
        Record::question(format!("How fast does the market for small-business HR tools grow in {name}?"));
    let question = question.because("The launch plan rests on it").sure(1.0, "It is what we have to know.");
    let question = question.for_task(sizing).relates(Blocks, stage.unit("goal")?);
    stage.record("dee", "growth question", question).await?;
    let finding =
        Record::finding(format!("The market for small-business HR tools in {name} grows at {high}% a year."))
            .because("Size the market")
            .for_task(sizing)
            .sure(0.82, "Three analyst reports agree.")
            .evidence("Analyst report, spring edition, table 4")
            .relates(Answers, stage.unit("growth question")?);
    stage.record("ada", "high growth", finding).await?;
    let seen = Record::observation(format!(
        "Two of five vendors in {name} raised prices this quarter and lost no customer."
    ))
    .because("Note what vendors do")
    .for_task(sizing)
    .sure(0.7, "Their public price pages.")
    .relates(Informs, stage.unit("growth question")?);
    stage.record("ben", "vendors", seen).await?;
    let support = Record::finding(format!("Job postings that name HR software rose by a fifth in {name}."))
        .because("Check the growth from another side")
        .for_task(sizing)
        .sure(0.66, "One job board, a year of data.")
        .supports(stage.unit("high growth")?);
    stage.record("ada", "postings", support).await?;
    let attune =
        Attune::for_role("strategist", 10).hint(format!("How attractive is {name}?")).on_task(sizing);
    stage.attune("dee", attune).await
}

/// Two researchers contradict each other; the surer one is believed, and then corrects itself.
async fn clash(stage: &mut Stage, market: &Market, sizing: &str) -> Result<(), Failure> {
    let Market { name, low, settled, .. } = market;
    let rival =
        Record::finding(format!("The market for small-business HR tools in {name} grows at {low}% a year."))
            .because("Check the growth estimate from the bottom up")
            .for_task(sizing)
            .sure(0.88, "Two bottom-up models, one from tax filings.")
            .evidence("Model A: 13.6% to 14.4%")
            .evidence("Model B: from tax filings of 2,100 firms")
            .contradicts(stage.unit("high growth")?);
    let conflict = stage.record("ben", "low growth", rival).await?;
    let doubt = Record::new(
        MemoryType::Contradiction,
        "The reports count every firm with an account; the models count those that pay.",
    );
    let doubt =
        doubt.because("Say where the two estimates part").for_task(sizing).sure(0.75, "Read both methods.");
    let doubt =
        doubt.relates(Informs, stage.unit("low growth")?).relates(Informs, stage.unit("high growth")?);
    stage.record("eli", "where they part", doubt).await?;
    if let Some(conflict) = conflict {
        let merge = Merge::by(Strategy::ConfidenceWeighted, conflict);
        stage
            .merge("dee", merge.because("We sell to firms that pay, and that is what the models count."))
            .await?;
    }
    let correction = Record::new(
        MemoryType::Correction,
        format!("Recounted with the filings of last month: {settled}% a year in {name}."),
    );
    let correction =
        correction.because("Correct the growth estimate").for_task(sizing).sure(0.92, "Primary data.");
    let correction = correction.supersedes(stage.unit("low growth")?);
    stage.record("ben", "recount", correction.relates(CausedBy, stage.unit("where they part")?)).await?;
    let assumption = Record::new(MemoryType::Assumption, "Growth stays where it is for two years.");
    let assumption =
        assumption.because("Plan beyond the first year").for_task(sizing).sure(0.5, "No sign against it.");
    stage.record("ada", "steady", assumption.relates(DependsOn, stage.unit("recount")?)).await?;
    Ok(())
}

/// A draft becomes everyone's; two views of the price are joined.
async fn pricing(stage: &mut Stage, market: &Market, plan: &str) -> Result<(), Failure> {
    let Market { name, price, .. } = market;
    let draft = Record::finding(format!("Small firms in {name} accept {price} euros a seat."))
        .as_draft()
        .because("Find the price")
        .for_task(plan)
        .relates(Elaborates, stage.unit("vendors")?);
    stage.record("ada", "price draft", draft).await?;
    let committed = Commit::of(stage.unit("price draft")?).sure(0.71, "Forty interviews.");
    stage.commit("ada", committed).await?;
    let rival =
        Record::finding(format!("Above {} euros a seat every second firm in {name} walks away.", price - 2))
            .because("Test the price")
            .for_task(plan)
            .sure(0.71, "A survey of three hundred.")
            .contradicts(stage.unit("price draft")?);
    let conflict = stage.record("eli", "walk away", rival).await?;
    if let Some(conflict) = conflict {
        let text =
            format!("{price} euros a seat with a free first year: interviews and survey both hold then.");
        let joined = Merge::joined(conflict, text);
        stage
            .merge("dee", joined.because("They asked about different moments: signing and renewing."))
            .await?;
    }
    let hasty = Record::observation("A competitor leaves the market this summer.");
    let hasty = hasty.because("Note what competitors do").for_task(plan).sure(0.4, "A rumour at a fair.");
    stage.record("ada", "rumour", hasty).await?;
    stage.retract("ada", "rumour", "The competitor denied it in writing.").await
}

/// A constraint, a question about it that is answered, and a contradiction that waits for a person.
async fn law(stage: &mut Stage, market: &Market, plan: &str) -> Result<(), Failure> {
    let Market { name, .. } = market;
    let constraint = Record::new(
        MemoryType::Constraint,
        format!("Payroll data of {name} must stay in the European Union, backups too."),
    );
    let constraint =
        constraint.because("Keep the launch lawful").for_task(plan).sure(0.97, "Two statutes, read.");
    stage.record("fay", "data stays", constraint.relates(Blocks, stage.unit("goal")?)).await?;
    let question =
        Record::question("Where do our nightly backups go?").because("The constraint names backups");
    let question = question.for_task(plan).sure(1.0, "Nobody has said.");
    stage.record("eli", "backups", question.relates(DependsOn, stage.unit("data stays")?)).await?;
    let answer = Record::finding("Nightly backups go to Frankfurt and Dublin, none leaves the Union.")
        .because("Answer where backups go")
        .for_task(plan)
        .sure(0.95, "Configuration of both regions.")
        .relates(Answers, stage.unit("backups")?)
        .supports(stage.unit("goal")?);
    stage.record("fay", "frankfurt", answer).await?;
    let now = Record::decision(format!("Hire two people in {name} before the launch."));
    let now = now.because("Be able to answer customers").for_task(plan).sure(0.7, "Support load elsewhere.");
    stage.record("dee", "hire", now).await?;
    let later = Record::decision(format!("Hire nobody in {name} before the first hundred customers."));
    let later = later.because("Keep costs down").for_task(plan).sure(0.7, "The budget of this year.");
    let conflict = stage.record("eli", "do not hire", later.contradicts(stage.unit("hire")?)).await?;
    if let Some(conflict) = conflict {
        // Equally sure: nothing but a person can decide.
        let merge = Merge::by(Strategy::ConfidenceWeighted, conflict);
        stage.merge("fay", merge.because("Both are equally sure of it.")).await?;
    }
    Ok(())
}

/// Two agents say different things of the same matter, and neither knows of the other: the Field does.
async fn unnoticed(stage: &mut Stage, market: &Market, plan: &str) -> Result<(), Failure> {
    let Market { name, .. } = market;
    let purpose = "Plan the first weeks";
    let promised = Record::finding(format!("Setting up a new customer in {name} takes 6 weeks."))
        .because(purpose)
        .for_task(plan)
        .sure(0.6, "What sales tells customers.");
    stage.record("dee", "setup promised", promised).await?;
    let measured = Record::finding(format!("Setting up a new customer in {name} takes 3 weeks."))
        .because(purpose)
        .for_task(plan)
        .sure(0.9, "The last forty customers, measured.");
    stage.record("ada", "setup measured", measured).await?;
    if let Some(conflict) = stage.noticed("ada", "setup measured").await? {
        let merge = Merge::by(Strategy::ConfidenceWeighted, conflict);
        stage.merge("eli", merge.because("Measured beats promised.")).await?;
    }
    Ok(())
}

async fn decision(stage: &mut Stage, market: &Market, plan: &str) -> Result<(), Failure> {
    let Market { name, settled, .. } = market;
    let attune =
        Attune::for_role("strategist", 12).hint(format!("Decide on the launch in {name}")).on_task(plan);
    stage.attune("dee", attune.explained()).await?;
    let decision = Record::decision(format!(
        "We open in {name} in spring: {settled}% growth, and the data may stay where it is."
    ))
    .because("Settle the launch")
    .for_task(plan)
    .sure(0.86, "Growth recounted, law cleared, price agreed.")
    .relates(DependsOn, stage.unit("recount")?)
    .relates(DependsOn, stage.unit("frankfurt")?)
    .relates(CausedBy, stage.unit("goal")?);
    stage.record("dee", "launch", decision).await?;
    let directive = Record::new(
        MemoryType::HumanDirective,
        "Tell me before anything is promised to a customer in writing.",
    );
    let directive = directive.because("Stay in charge of promises").for_task(plan).sure(1.0, "My own wish.");
    stage.record("fay", "promises", directive.relates(Informs, stage.unit("launch")?)).await?;
    stage.replay("eli", Replay::of(ReplayTarget::Decision, stage.unit("launch")?)).await
}

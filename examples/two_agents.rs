//! Two agents that share a memory: one finds something out, the other is told, and is brought what matters for its own
//! work. Start a hub (`akashik serve`), then:
//!
//! ```sh
//! cargo run --example two_agents                                # on http://127.0.0.1:7420, or AKASHIK_URL
//! ```

use std::io::Write;

use akashik_hub::client::{Attune, Client, ClientOptions, Record, Register, Replay, Subscribe};
use akashik_hub::protocol::{EventName, ReplayDepth};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

#[tokio::main]
#[allow(dead_code, reason = "the tests call `play` themselves")]
async fn main() -> Outcome<()> {
    let url = std::env::var("AKASHIK_URL").unwrap_or_else(|_| "http://127.0.0.1:7420".into());
    play(&url, &mut std::io::stdout()).await
}

/// The whole play, on the hub at `url`; what happens is told on `out`.
pub async fn play(url: &str, out: &mut dyn Write) -> Outcome<()> {
    let researcher = Client::connect(url, ClientOptions::new("researcher-31")).await?;
    researcher.register("market_researcher").await?;
    let strategist = Client::connect(url, ClientOptions::new("strategist-31")).await?;
    strategist.register(Register::as_role("strategist").interested_in("market growth")).await?;

    // Say once what to hear of; the stream goes on over lost connections and restarts of the hub.
    let wish = Subscribe::to([EventName::MemoryRecorded]).named("two-agents").include_unit();
    let mut news = strategist.subscribe(wish).await?;

    let finding = Record::finding("The European market for SMB HR tools grows at 15 % a year.")
        .because("Size the market")
        .for_task("task-market-sizing")
        .sure(0.9, "Primary data of four vendors.")
        .evidence("vendor-interviews-2026");
    let recorded = researcher.record(finding).await?;
    writeln!(out, "researcher-31 recorded {}", recorded.memory_unit_id)?;

    if let Some(notification) = news.next().await {
        let notification = notification?;
        writeln!(out, "strategist-31 heard: {}", notification.summary)?;
    }

    // No query: who asks and what for is enough.
    let need = Attune::for_role("strategist", 5).hint("draft the positioning section on market growth");
    for found in strategist.attune(need).await?.record {
        let text = found.memory_unit.content.unwrap_or_default();
        writeln!(
            out,
            "strategist-31 was brought {:.2} {text} ({})",
            found.relevance_score, found.relevance_reason
        )?;
    }

    let decision =
        Record::new(akashik_hub::protocol::MemoryType::Decision, "Position on the growth of the market.")
            .because("Choose the headline of the section")
            .sure(0.8, "Rests on primary data.")
            .relates(akashik_hub::protocol::RelationType::DependsOn, recorded.memory_unit_id);
    let decided = strategist.record(decision).await?;
    writeln!(out, "strategist-31 decided {}", decided.memory_unit_id)?;

    // Why was that decided? The log knows.
    let replayed =
        strategist.replay(Replay::unit(decided.memory_unit_id).depth(ReplayDepth::Detailed)).await?;
    for event in replayed.timeline {
        writeln!(
            out,
            "  epoch {}: {} by {}: {}",
            event.epoch, event.event_type, event.agent_id, event.description
        )?;
    }

    strategist.unsubscribe("two-agents").await?;
    for agent in [researcher, strategist] {
        agent.deregister().await?;
        agent.close().await;
    }
    Ok(())
}

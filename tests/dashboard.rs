//! The dashboard: what the hub serves to browsers, what people who watch may look at, and the page itself in a browser.

mod support;

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use support::{check, soon, start, start_with};

const HTML: (&str, &str) = ("Accept", "text/html,application/xhtml+xml,*/*;q=0.8");

#[tokio::test(flavor = "multi_thread")]
async fn browsers_get_the_page_and_others_the_list() {
    let hub = start().await;
    let page = hub.request("GET", "/", &[HTML], "").await;
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
    ] {
        assert_eq!(page.header(name), Some(value));
    }
    assert!(page.header("vary").unwrap().contains("accept"));
    let list = hub.get("/").await;
    assert_eq!(list.header("content-type"), Some("application/json"));
    assert!(list.json()["endpoints"].as_array().unwrap().contains(&json!("GET /v1/ws")));
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn assets_are_kept_for_ever_and_the_page_is_not() {
    let hub = start().await;
    let page = hub.request("GET", "/", &[HTML], "").await;
    let Some(asset) = page.text().split('"').find(|part| part.ends_with(".js")).map(str::to_owned) else {
        eprintln!("skipped: the dashboard is not part of this build");
        return hub.stop().await;
    };
    // Relative, so that a path prefix in front of the hub changes nothing.
    let path = format!("/{}", asset.strip_prefix("./").expect("a relative address"));
    let script = hub.request("GET", &path, &[("Accept-Encoding", "br")], "").await;
    assert_eq!((script.status, script.header("content-encoding")), (200, Some("br")));
    assert_eq!(script.header("cache-control"), Some("public, max-age=31536000, immutable"));
    assert_eq!(page.header("cache-control"), Some("no-cache"));
    let tag = script.header("etag").unwrap().to_owned();
    let again = hub.request("GET", &path, &[("If-None-Match", &tag)], "").await;
    assert_eq!((again.status, again.body.len()), (304, 0));
    check(&hub.get("/assets/other.js").await, 404, "INVALID_MESSAGE");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_leaves_no_trace() {
    let hub = start_with(|config| config.audit_reads = akashik_hub::hub::Audit::All).await;
    hub.register("a").await;
    hub.register("b").await;
    let unit = hub.record("a", "the market grows").await;
    let draft = json!({ "mode": "draft", "type": "finding", "content": "the market, drafted",
        "intent": { "purpose": "p" } });
    hub.post("/v1/record", &[("Akashik-Agent", "b")], draft.to_string()).await;
    let before = hub.get("/v1/field/status").await.json();
    let attune = json!({ "scope": { "role": "researcher", "max_units": 9, "include_drafts": true },
        "context_hint": "market", "explain": true })
    .to_string();
    let brought = |reply: &Value| {
        let ids = reply["record"].as_array().unwrap().iter();
        ids.map(|one| one["memory_unit"]["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    // Nobody's eyes need no registration; an agent's leave its own units out; nobody is shown drafts, its author included.
    let nobody = hub.post("/v1/look/attune", &[], &attune).await;
    assert_eq!((nobody.status, brought(&nobody.json())), (200, vec![unit.clone()]), "{}", nobody.text());
    assert!(nobody.json()["record"][0]["factors"]["lexical"]["value"].is_number());
    let by_b = hub.post("/v1/look/attune", &[("Akashik-Agent", "b")], &attune).await;
    assert_eq!(brought(&by_b.json()), vec![unit.clone()]);
    let by_a = hub.post("/v1/look/attune", &[("Akashik-Agent", "a")], &attune).await;
    assert_eq!(brought(&by_a.json()), Vec::<String>::new());
    let replay =
        json!({ "target_type": "memory_unit", "target_id": unit, "depth": "full_trace" }).to_string();
    let told = hub.post("/v1/look/replay", &[], &replay).await;
    assert_eq!((told.status, &told.json()["timeline"][0]["event_type"]), (200, &json!("RECORD")));
    let after = hub.get("/v1/field/status").await.json();
    for key in ["epoch", "log_entries", "agents"] {
        assert_eq!(before[key], after[key], "{key}");
    }
    let epoch = told.header("akashik-epoch").unwrap().parse::<u64>().unwrap();
    assert_eq!(json!(epoch), after["epoch"]);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn looks_are_refused_as_operations_are() {
    let hub = start().await;
    let scope = json!({ "scope": { "role": "r", "max_units": 1 } }).to_string();
    let unknown = hub.post("/v1/look/attune", &[("Akashik-Agent", "nobody")], &scope).await;
    assert_eq!(check(&unknown, 403, "AGENT_NOT_REGISTERED")["agent_id"], "nobody");
    let wrong = hub.post("/v1/look/attune", &[], json!({ "scope": { "role": "r" } }).to_string()).await;
    assert_eq!(check(&wrong, 400, "INVALID_MESSAGE")["key"], "scope.max_units");
    check(&hub.post("/v1/look/attune", &[], "{").await, 400, "INVALID_MESSAGE");
    let foreign = hub.post("/v1/look/attune", &[("Origin", "http://evil.example")], &scope).await;
    check(&foreign, 403, "FORBIDDEN");
    check(&hub.post("/v1/look/record", &[], "{}").await, 404, "INVALID_MESSAGE");
    let missing = json!({ "target_type": "task", "target_id": "t", "depth": "summary" }).to_string();
    check(&hub.post("/v1/look/replay", &[], missing).await, 404, "UNIT_NOT_FOUND");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_observer_watches_and_acts_over_one_websocket() {
    let hub = start().await;
    hub.register("a").await;
    let first = hub.record("a", "before").await;
    let mut watching = hub.websocket_with("/v1/ws?observer=true&after=0.0&include_unit=true", &[]).await;
    let joined = soon("what was before", watching.reply()).await;
    assert_eq!((&joined["payload"]["event"], &joined["agent_id"]), (&json!("agent.joined"), &json!("")));
    let told = soon("the unit", watching.reply()).await;
    assert_eq!(told["payload"]["memory_unit"]["id"], json!(first));
    assert!(told["id"].as_str().unwrap().starts_with("push-observer-"), "{told}");
    // Acting over the same connection: its reply comes before what it brought about.
    let register = json!({ "id": "maria", "role": "human_operator" });
    watching.send(&support::envelope("m-1", "REGISTER", "maria", register)).await;
    assert_eq!(soon("the reply", watching.reply()).await["id"], "m-1");
    let joined = soon("its effect", watching.reply()).await;
    assert_eq!(
        (&joined["payload"]["event"], &joined["payload"]["agent_id"]),
        (&json!("agent.joined"), &json!("maria"))
    );
    // And again from a place, with nothing lost or repeated.
    let cursor = told["payload"]["cursor"].as_str().unwrap();
    let mut again = hub.websocket_with(&format!("/v1/ws?observer=true&after={cursor}"), &[]).await;
    assert_eq!(soon("the next", again.reply()).await["payload"]["agent_id"], "maria");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_ahead_of_the_field_is_refused_before_the_upgrade() {
    let hub = start().await;
    let upgrade = [
        ("Connection", "close, Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    let ahead = hub.request("GET", "/v1/ws?observer=true&after=99.0", &upgrade, "").await;
    assert_eq!(check(&ahead, 400, "INVALID_MESSAGE")["key"], "after");
    let wrong = hub.request("GET", "/v1/ws?observer=perhaps", &upgrade, "").await;
    assert_eq!(check(&wrong, 400, "INVALID_MESSAGE")["key"], "observer");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn units_are_listed_from_the_newest_back() {
    let hub = start().await;
    hub.register("a").await;
    let mut units = Vec::new();
    for n in 0..5 {
        units.push(hub.record("a", &format!("unit {n}")).await);
    }
    units.reverse();
    let (mut found, mut before) = (Vec::new(), String::new());
    loop {
        let page = hub.get(&format!("/v1/units?order=newest&limit=2{before}")).await.json();
        found
            .extend(page["units"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned()));
        let Some(cursor) = page["cursor"].as_str() else { break };
        before = format!("&before={cursor}");
    }
    assert_eq!(found, units);
    let wrong = hub.get("/v1/units?order=random").await;
    assert_eq!(check(&wrong, 400, "INVALID_MESSAGE")["key"], "order");
    let count = async |archived: &str| {
        let page = hub.get(&format!("/v1/units?archived={archived}")).await.json();
        page["units"].as_array().map(Vec::len)
    };
    assert_eq!((count("true").await, count("false").await), (Some(0), Some(5)));
    let wrong = hub.get("/v1/units?archived=perhaps").await;
    assert_eq!(check(&wrong, 400, "INVALID_MESSAGE")["key"], "archived");
    let capabilities = hub.get("/v1/field/capabilities").await.json();
    assert!(capabilities["supported_operations"].as_array().unwrap().contains(&json!("MERGE")));
    hub.stop().await;
}

/// Runs the page's own tests: its logic, and every view in a browser on real hubs. Where npm or a browser is missing they
/// are skipped, but in CI, where both have to be there.
#[test]
fn the_page_in_a_browser() {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("web");
    let is_ci = std::env::var_os("CI").is_some_and(|ci| !ci.is_empty());
    let skip = |why: &str| {
        assert!(!is_ci, "in CI the page must be tested, but {why}");
        eprintln!("SKIPPED: the dashboard's browser tests did not run: {why}");
    };
    if !web.join("node_modules/playwright-core").exists() {
        return skip("its packages are not installed (npm ci in web/)");
    }
    let browsers = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
    if std::env::var_os("AKASHIK_BROWSER").is_none() && !browsers.iter().any(|path| Path::new(path).exists())
    {
        return skip("there is no Chromium (AKASHIK_BROWSER names one)");
    }
    if !web.join("dist/index.html").exists() {
        return skip("web/dist was not built");
    }
    let ran = Command::new("npm")
        .args(["test", "--silent"])
        .current_dir(&web)
        .env("AKASHIK_BINARY", env!("CARGO_BIN_EXE_akashik"))
        .stdin(Stdio::null())
        .output();
    let Ok(output) = ran else { return skip("npm is not installed") };
    let told = [&output.stdout[..], &output.stderr[..]].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&told));
}

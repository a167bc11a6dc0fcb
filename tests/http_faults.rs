//! HTTP: what is wrong is said exactly, always as a JSON error body, and the hub goes on.

mod support;

use std::time::{Duration, Instant};

use serde_json::json;
use support::{Running, check, envelope, eventually, finding, soon, start, start_with};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::test(flavor = "multi_thread")]
async fn unknown_paths_and_tricks_are_404() {
    let hub = start().await;
    for path in [
        "/v1",
        "/v1/",
        "/nothing",
        "/v1/nothing",
        "/v1/record/",
        "//v1/record",
        "/v1//record",
        "/v1/../v1/record",
        "/v1/%2e%2e/v1/record",
        "/v1/units/%2e%2e",
        "/v1/units/a%2Fb",
        "/v1/units/..",
        "/v1/units/",
        "/v1/fields//units",
        "/v1/fields/../units",
        "/v1/fields/%2e%2e/units",
        "/v1/fields/a%2Fb/units",
        "/v1/units/%00",
        "/v1/units/%zz",
        "/V1/units",
        "/v1/coordinate",
    ] {
        for method in ["GET", "POST", "DELETE"] {
            let reply = hub.request(method, path, &[], "").await;
            assert_eq!(reply.status, 404, "{method} {path}: {}", reply.text());
            check(&reply, 404, "INVALID_MESSAGE");
        }
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_methods_are_405_with_allow() {
    let hub = start().await;
    for (method, path, allow) in [
        ("GET", "/v1/record", "POST"),
        ("PUT", "/v1/messages", "POST"),
        ("POST", "/v1/units", "GET, HEAD"),
        ("DELETE", "/v1/units/mem-1", "GET, HEAD"),
        ("POST", "/healthz", "GET, HEAD"),
        ("PATCH", "/", "GET, HEAD"),
        ("POST", "/v1/ws", "GET"),
        ("HEAD", "/v1/ws", "GET"),
        ("OPTIONS", "/v1/log", "GET, HEAD"),
        ("BREW", "/v1/fields/other/attune", "POST"),
    ] {
        let reply = hub.request(method, path, &[], "").await;
        assert_eq!((reply.status, reply.header("allow")), (405, Some(allow)), "{method} {path}");
        if method != "HEAD" {
            check(&reply, 405, "INVALID_MESSAGE");
        }
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_types_than_json_are_415() {
    let hub = start().await;
    hub.register("a").await;
    let send = async |value: &str| {
        hub.post("/v1/record", &[("Akashik-Agent", "a"), ("Content-Type", value)], finding("x").to_string())
            .await
    };
    for value in
        ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1", "json"]
    {
        check(&send(value).await, 415, "INVALID_MESSAGE");
    }
    for value in ["application/json", "application/json; charset=utf-8", "APPLICATION/JSON"] {
        assert_eq!(send(value).await.status, 200, "{value}");
    }
    hub.stop().await;
}

/// The text of a valid envelope, padded with spaces to this size.
fn sized(size: usize) -> String {
    let text = envelope("m-size", "DETECT", "a", json!({ "mode": "list" })).to_string();
    format!("{text}{}", " ".repeat(size - text.len()))
}

async fn send_chunked(hub: &Running, body: &str, chunk: usize) -> support::Reply {
    let mut raw = format!(
        "POST /v1/messages HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n",
        hub.addr
    );
    for part in body.as_bytes().chunks(chunk) {
        raw.push_str(&format!("{:x}\r\n{}\r\n", part.len(), std::str::from_utf8(part).unwrap()));
    }
    raw.push_str("0\r\n\r\n");
    hub.raw(raw).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_size_limit_is_exact() {
    let hub = start_with(|config| config.limits.message_bytes = 2_000).await;
    hub.register("a").await;
    assert_eq!(hub.post("/v1/messages", &[], sized(2_000)).await.status, 200);
    check(&hub.post("/v1/messages", &[], sized(2_001)).await, 413, "MESSAGE_TOO_LARGE");
    for chunk in [7, 500, 10_000] {
        assert_eq!(send_chunked(&hub, &sized(2_000), chunk).await.status, 200, "{chunk}");
        check(&send_chunked(&hub, &sized(2_001), chunk).await, 413, "MESSAGE_TOO_LARGE");
    }
    // Far beyond the limit the answer still arrives, although the hub does not keep the body.
    check(&hub.post("/v1/messages", &[], sized(3_000_000)).await, 413, "MESSAGE_TOO_LARGE");
    check(&send_chunked(&hub, &sized(3_000_000), 65_536).await, 413, "MESSAGE_TOO_LARGE");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_default_limit_is_a_mebibyte() {
    let hub = start().await;
    hub.register("a").await;
    assert_eq!(hub.post("/v1/messages", &[], sized(1024 * 1024)).await.status, 200);
    check(&hub.post("/v1/messages", &[], sized(1024 * 1024 + 1)).await, 413, "MESSAGE_TOO_LARGE");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_to_be_asked_is_refused_without_sending() {
    let hub = start().await;
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nHost: {}\r\nContent-Length: 9000000\r\nExpect: 100-continue\r\n\r\n",
        hub.addr
    );
    let mut tcp = TcpStream::connect(hub.addr).await.unwrap();
    tcp.write_all(head.as_bytes()).await.unwrap();
    let mut start = [0; 12];
    soon("the refusal", tcp.read_exact(&mut start)).await.unwrap();
    assert_eq!(&start, b"HTTP/1.1 413");
    drop(tcp);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_no_message_are_400() {
    let hub = start().await;
    hub.register("a").await;
    let deep = "[".repeat(100_000);
    let deep_object = "{\"a\":".repeat(100_000);
    let bodies: [&[u8]; 12] = [
        b"",
        b" ",
        b"{",
        b"[]",
        b"7",
        b"null",
        b"\"x\"",
        b"{}x",
        b"\xff\xfe",
        b"{\"a\":\"\xc3\"}",
        deep.as_bytes(),
        deep_object.as_bytes(),
    ];
    for body in bodies {
        for path in ["/v1/record", "/v1/messages", "/v1/fields/other/attune"] {
            let reply = hub.post(path, &[("Akashik-Agent", "a")], body).await;
            check(&reply, 400, "INVALID_MESSAGE");
        }
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_hosts_are_forbidden_everywhere() {
    let hub = start_with(|config| config.allowed_hosts = vec!["hub.example".into()]).await;
    for host in ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", ""] {
        for (method, path) in
            [("GET", "/healthz"), ("POST", "/v1/record"), ("GET", "/v1/ws"), ("GET", "/nothing")]
        {
            check(&hub.request(method, path, &[("Host", host)], "").await, 403, "FORBIDDEN");
        }
    }
    for host in
        ["localhost", "LOCALHOST:1", "x.localhost", "10.0.0.1:99", "[::1]", "hub.example", "hub.example:80"]
    {
        assert_eq!(hub.request("GET", "/healthz", &[("Host", host)], "").await.status, 200, "{host}");
    }
    let none = hub.raw("GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n").await;
    check(&none, 403, "FORBIDDEN");
    assert_eq!(hub.raw("GET /healthz HTTP/1.0\r\n\r\n").await.status, 200);
    let absolute = "GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    check(&hub.raw(absolute).await, 403, "FORBIDDEN");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_origins_change_nothing() {
    let hub = start_with(|config| config.allowed_origins = vec!["https://desk.example".into()]).await;
    hub.register("a").await;
    let port = hub.addr.port();
    let send = async |origin: &str| {
        hub.post("/v1/record", &[("Akashik-Agent", "a"), ("Origin", origin)], finding("x").to_string()).await
    };
    for origin in
        ["null", "https://evil.example", "http://localhost", "http://localhost:1", "https://desk.example:1"]
    {
        check(&send(origin).await, 403, "FORBIDDEN");
        let ws = [("Origin", origin), ("Upgrade", "websocket"), ("Connection", "Upgrade, close")];
        check(&hub.request("GET", "/v1/ws", &ws, "").await, 403, "FORBIDDEN");
    }
    for origin in [
        format!("http://localhost:{port}"),
        format!("http://127.0.0.1:{port}"),
        format!("http://127.9.9.9:{port}"),
        format!("http://[::1]:{port}"),
        "https://desk.example".into(),
    ] {
        assert_eq!(send(&origin).await.status, 200, "{origin}");
    }
    let units = hub.get("/v1/units").await.json();
    assert_eq!(units["units"].as_array().unwrap().len(), 5);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_get_that_is_no_handshake_is_told_so() {
    let hub = start().await;
    let reply = hub.get("/v1/ws").await;
    check(&reply, 426, "INVALID_MESSAGE");
    assert_eq!(
        (reply.header("upgrade"), reply.header("sec-websocket-version")),
        (Some("websocket"), Some("13"))
    );
    let old = [("Upgrade", "websocket"), ("Connection", "Upgrade, close"), ("Sec-WebSocket-Version", "8")];
    check(&hub.request("GET", "/v1/ws", &old, "").await, 426, "INVALID_MESSAGE");
    let keyless =
        [("Upgrade", "websocket"), ("Connection", "Upgrade, close"), ("Sec-WebSocket-Version", "13")];
    check(&hub.request("GET", "/v1/ws", &keyless, "").await, 400, "INVALID_MESSAGE");
    check(&hub.get("/v1/fields/absent/ws").await, 404, "FIELD_NOT_FOUND");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_on_the_socket_hurts_nobody() {
    let hub = start().await;
    for bytes in [&b"\x16\x03\x01\x02\x00"[..], b"GET\r\n\r\n", b"\0\0\0\0\r\n\r\n", &[b'A'; 100_000]] {
        let mut tcp = TcpStream::connect(hub.addr).await.unwrap();
        let _ = tcp.write_all(bytes).await;
        let _ = tcp.shutdown().await;
        let _ = soon("the end", tcp.read_to_end(&mut Vec::new())).await;
    }
    assert_eq!(hub.get("/healthz").await.status, 200);
    hub.stop().await;
}

/// Each of these made a task panic once; now each gets an answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_target_without_a_path_is_answered() {
    let hub = start().await;
    let host = hub.addr;
    // A target that is a name alone counts as the host that is meant.
    for (target, status, code) in [
        ("GET x", 403, "FORBIDDEN"),
        ("CONNECT 127.0.0.1:443", 404, "INVALID_MESSAGE"),
        ("OPTIONS *", 404, "INVALID_MESSAGE"),
    ] {
        let head = format!("{target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        check(&hub.raw(&head).await, status, code);
    }
    let foreign = hub.raw("GET x HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n").await;
    check(&foreign, 403, "FORBIDDEN");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_beyond_the_bound_wait_for_one_to_end() {
    let hub = start_with(|config| config.connections_max = 2).await;
    let mut idle = Vec::new();
    for _ in 0..2 {
        let mut tcp = TcpStream::connect(hub.addr).await.unwrap();
        // Answered once: it is accepted, and kept alive.
        let ask = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", hub.addr);
        tcp.write_all(ask.as_bytes()).await.unwrap();
        soon("an answer", tcp.read_u8()).await.unwrap();
        idle.push(tcp);
    }
    let waits = tokio::time::timeout(Duration::from_millis(300), hub.get("/healthz")).await;
    assert!(waits.is_err(), "a third connection was served");
    idle.pop();
    assert_eq!(hub.get("/healthz").await.status, 200);
    drop(idle);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_does_not_wait_for_idle_connections() {
    let mut hub = start().await;
    let fresh = TcpStream::connect(hub.addr).await.unwrap();
    let mut kept = TcpStream::connect(hub.addr).await.unwrap();
    let ask = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", hub.addr);
    kept.write_all(ask.as_bytes()).await.unwrap();
    soon("an answer", kept.read_u8()).await.unwrap();
    let begun = Instant::now();
    hub.drain().await;
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(TcpStream::connect(hub.addr).await.is_err(), "it still listens");
    drop((fresh, kept));
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_in_flight_is_answered_at_shutdown() {
    let mut hub = start().await;
    hub.register("a").await;
    let body = finding("half way").to_string();
    let (first, rest) = body.split_at(10);
    let head = format!(
        "POST /v1/record HTTP/1.1\r\nHost: {}\r\nAkashik-Agent: a\r\nContent-Length: {}\r\n\r\n{first}",
        hub.addr,
        body.len()
    );
    let mut tcp = TcpStream::connect(hub.addr).await.unwrap();
    tcp.write_all(head.as_bytes()).await.unwrap();
    // A request on another connection, sent later and answered: the first one's head has been read by then.
    assert_eq!(hub.get("/healthz").await.status, 200);
    hub.close();
    let addr = hub.addr;
    eventually("the end of listening", || std::net::TcpStream::connect(addr).is_err()).await;
    tcp.write_all(rest.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    soon("the answer", tcp.read_to_end(&mut answer)).await.unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_early_cancels_nothing() {
    let hub = start().await;
    hub.register("a").await;
    for n in 0..20 {
        let body = envelope(&format!("m-{n}"), "RECORD", "a", finding(&format!("left {n}"))).to_string();
        let head = format!(
            "POST /v1/record HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\r\n",
            hub.addr,
            body.len()
        );
        let mut tcp = TcpStream::connect(hub.addr).await.unwrap();
        tcp.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        drop(tcp);
        // Whatever became of the first, sent again it is recorded once and answered.
        assert_eq!(hub.post("/v1/record", &[], &body).await.status, 200);
    }
    let units = hub.get("/v1/units").await.json();
    assert_eq!(units["units"].as_array().unwrap().len(), 20);
    hub.stop().await;
}

//! WebSocket: one text frame is one envelope, replies in the order of requests, bounds, endings (wire, 2).

mod support;

use std::time::Duration;

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use support::{
    Running, check_body, client_frame, envelope, eventually, finding, server_close, server_frame, soon,
    start, start_with,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message as Frame;

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_echoes_its_request() {
    let hub = start().await;
    let mut ws = hub.websocket().await;
    ws.register("a").await;
    let mut request = envelope("m-1", "RECORD", "a", finding("over a socket"));
    request["session_id"] = json!("s-1");
    ws.send(&request).await;
    let reply = ws.reply().await;
    for key in ["protocol", "version", "id", "operation", "agent_id", "session_id"] {
        assert_eq!(reply[key], request[key], "{key}");
    }
    assert_eq!(reply.as_object().unwrap().len(), 8, "{reply}");
    assert_eq!(
        (&reply["payload"]["status"], &reply["payload"]["epoch"]),
        (&json!("accepted"), &reply["epoch"])
    );
    let refused = ws.call("m-2", "RECORD", "a", json!({ "type": "odd" })).await;
    assert_eq!(refused["payload"]["code"], "INVALID_TYPE");
    check_body(&refused["payload"]);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_and_the_subprotocol() {
    let hub = start().await;
    let mut other =
        hub.websocket_with("/v1/fields/other/ws", &[("sec-websocket-protocol", "akashik.v0.1")]).await;
    other.register("only-there").await;
    assert_eq!(hub.get("/v1/agents").await.json()["agents"], json!([]));
    let there = hub.get("/v1/fields/other/agents").await.json();
    assert_eq!(
        (&there["agents"][0]["id"], &there["agents"][0]["connected"]),
        (&json!("only-there"), &json!(true))
    );
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pipelined_replies_come_in_order() {
    let hub = start().await;
    let mut ws = hub.websocket().await;
    ws.register("a").await;
    // Three times what may be in flight: reads, writes, refusals and bad frames mixed.
    let count = 768;
    let request = |n: usize| match n % 4 {
        0 => envelope(&n.to_string(), "RECORD", "a", finding(&format!("unit {n}"))).to_string(),
        1 => envelope(&n.to_string(), "DETECT", "a", json!({ "mode": "list" })).to_string(),
        2 => envelope(&n.to_string(), "RECORD", "a", json!({})).to_string(),
        _ => json!({ "id": n.to_string() }).to_string(),
    };
    let (mut sink, mut stream) = ws.stream.split();
    let send = async {
        for n in 0..count {
            sink.feed(Frame::text(request(n))).await.unwrap();
        }
        sink.flush().await.unwrap();
    };
    let receive = async {
        let mut epoch = 0;
        for n in 0..count {
            let text = stream.next().await.unwrap().unwrap().into_text().unwrap();
            let reply: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(reply["id"], n.to_string());
            if reply["payload"]["code"].is_null() {
                assert!(reply["epoch"].as_u64().unwrap() > epoch, "epochs grow");
                epoch = reply["epoch"].as_u64().unwrap();
            }
        }
    };
    soon("all replies", async { tokio::join!(send, receive) }).await;
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_frames_are_answered_and_twenty_in_a_row_end_it() {
    let hub = start().await;
    let mut ws = hub.websocket().await;
    ws.register("a").await;
    for n in 0..19 {
        ws.send(json!({ "id": format!("bad-{n}"), "operation": "RECORD", "nonsense": 1 })).await;
        let reply = ws.reply().await;
        assert_eq!((&reply["id"], &reply["operation"]), (&json!(format!("bad-{n}")), &json!("RECORD")));
        assert_eq!((&reply["agent_id"], &reply["payload"]["code"]), (&json!(""), &json!("INVALID_MESSAGE")));
        check_body(&reply["payload"]);
    }
    // A good one starts the count anew, even when it is refused.
    ws.call("good", "RECORD", "nobody", finding("x")).await;
    let bad = ["", "{", "[]", "null", "not json", "{\"id\": 7}", "{\"id\": \"x\"}"];
    for n in 0..20 {
        if n % 5 == 0 {
            ws.stream.send(Frame::binary(vec![1, 2, 3])).await.unwrap();
        } else {
            ws.send(bad[n % bad.len()]).await;
        }
        let reply = ws.reply().await;
        assert_eq!(reply["payload"]["code"], "INVALID_MESSAGE", "{reply}");
    }
    assert_eq!(ws.close_code().await, 1008);
    hub.stop().await;
}

/// An envelope padded with spaces to this size.
fn sized(size: usize) -> Vec<u8> {
    let mut text = envelope("m-size", "DETECT", "a", json!({ "mode": "list" })).to_string().into_bytes();
    text.resize(size, b' ');
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn the_size_limit_is_exact_also_in_fragments() {
    let hub = start_with(|config| config.limits.message_bytes = 2_000).await;
    let mut tcp = hub.raw_websocket().await;
    tcp.write_all(&client_frame(1, &sized(2_000))).await.unwrap();
    assert_eq!(server_frame(&mut tcp).await.0, 1);
    let fragments = |size: usize| {
        let text = sized(size);
        let mut first = client_frame(1, &text[..1_000]);
        first[0] &= 0x7f;
        [first, client_frame(0, &text[1_000..])].concat()
    };
    tcp.write_all(&fragments(2_000)).await.unwrap();
    assert_eq!(server_frame(&mut tcp).await.0, 1);
    tcp.write_all(&fragments(2_001)).await.unwrap();
    assert_eq!(server_close(&mut tcp).await, 1009);
    let mut tcp = hub.raw_websocket().await;
    tcp.write_all(&client_frame(1, &sized(2_001))).await.unwrap();
    assert_eq!(server_close(&mut tcp).await, 1009);
    // Also when most of it is still on its way, and after a request that must still be answered.
    let mut tcp = hub.raw_websocket().await;
    let large = [client_frame(1, &sized(500)), client_frame(1, &sized(3_000_000))].concat();
    let (mut reader, mut writer) = tcp.split();
    let mut seen = Vec::new();
    let write = async { drop(writer.write_all(&large).await) };
    let (read, ()) = soon("the end", async { tokio::join!(reader.read_to_end(&mut seen), write) }).await;
    assert!(read.is_ok(), "{read:?}");
    assert_eq!(seen[0], 0x81, "the reply comes first");
    let code = 1009_u16.to_be_bytes();
    assert!(seen.windows(2).any(|w| w == code), "closed with 1009");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_framing_closes_as_the_rfc_says() {
    let hub = start().await;
    let unmasked = b"\x81\x02hi".to_vec();
    let reserved = [&[0xf1, 0x80][..], &[0; 4]].concat();
    let unknown = client_frame(5, b"x");
    for (bytes, code) in
        [(client_frame(1, b"\xff\xfe"), 1007), (unmasked, 1002), (reserved, 1002), (unknown, 1002)]
    {
        let mut tcp = hub.raw_websocket().await;
        tcp.write_all(&bytes).await.unwrap();
        assert_eq!(server_close(&mut tcp).await, code, "{bytes:?}");
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_goodbye_is_echoed() {
    let hub = start().await;
    let mut ws = hub.websocket().await;
    ws.register("a").await;
    ws.stream.close(None).await.unwrap();
    while let Some(frame) = soon("the end", ws.stream.next()).await {
        frame.unwrap();
    }
    assert!(hub.hub.sessions().is_empty(), "gone before the goodbye was echoed");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_right_behind_the_handshake_are_not_lost() {
    let hub = start().await;
    let head = format!(
        "GET /v1/ws HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        hub.addr
    );
    let mut tcp = TcpStream::connect(hub.addr).await.unwrap();
    let early = client_frame(1, &sized(1_000));
    tcp.write_all(&[head.as_bytes(), &early].concat()).await.unwrap();
    let mut seen = Vec::new();
    while !seen.ends_with(b"\r\n\r\n") {
        seen.push(soon("the handshake", tcp.read_u8()).await.unwrap());
    }
    let (opcode, payload) = server_frame(&mut tcp).await;
    let reply: Value = serde_json::from_slice(&payload).unwrap();
    assert_eq!((opcode, &reply["id"]), (1, &json!("m-size")));
    hub.stop().await;
}

/// Writes the same bytes again and again until the hub takes no more; how many it took.
async fn flood(tcp: &mut TcpStream, bytes: &[u8], most: usize) -> usize {
    let mut taken = 0;
    while taken < most {
        // Goes on inside of a frame where the last write stopped.
        match timeout(Duration::from_secs(1), tcp.write(&bytes[taken % bytes.len()..])).await {
            Ok(count) => taken += count.unwrap(),
            Err(_) => return taken,
        }
    }
    panic!("the hub still reads after {taken} bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_never_reads_is_not_read_from() {
    let hub = start().await;
    let mut tcp = hub.raw_websocket().await;
    // Each is refused, and each refusal is larger than what the kernel needs to keep the request.
    let many = client_frame(1, &sized(300)).repeat(100);
    flood(&mut tcp, &many, 64 * 1024 * 1024).await;
    // Others do not notice.
    let mut other = hub.websocket().await;
    other.register("b").await;
    drop(tcp);
    drop(other);
    let sessions = hub.hub.sessions();
    eventually("the end of both", || sessions.is_empty()).await;
    hub.stop().await;
}

/// Replies to reads are large: few are computed for a peer that does not take them.
#[tokio::test(flavor = "multi_thread")]
async fn who_asks_for_much_and_reads_nothing_is_given_little() {
    let hub = start().await;
    hub.register("writer").await;
    hub.register("other").await;
    for at in 0..40 {
        hub.record("writer", &format!("{at} {}", "x".repeat(200_000))).await;
    }
    let mut ws = hub.websocket().await;
    ws.register("a").await;
    let scope = json!({ "scope": { "role": "r", "max_units": 1000 } });
    for at in 0..60 {
        ws.send(envelope(&format!("m-{at}"), "ATTUNE", "a", scope.clone())).await;
    }
    // Another's reads go on meanwhile; each round gives the hub time to compute what it will.
    let mut computed = 0;
    for round in 0..20 {
        let headers = [("Akashik-Agent", "other")];
        let small = json!({ "scope": { "role": "r", "max_units": 1 } }).to_string();
        assert_eq!(hub.post("/v1/attune", &headers, small).await.status, 200);
        let text = hub.get("/metrics").await.text();
        let line = text.lines().find(|line| {
            line.contains("operations_total{") && line.contains("ATTUNE") && line.contains("\"ok\"")
        });
        let count = line.and_then(|line| line.rsplit(' ').next()).and_then(|n| n.parse::<f64>().ok());
        computed = count.expect("ATTUNEs are counted") as usize - (round + 1);
    }
    // Each reply has 8 MB: four wait, and the socket holds at most one more.
    assert!(computed <= 6, "{computed} large replies were computed for a peer that reads nothing");
    drop(ws);
    hub.stop().await;
}

/// Pongs are output too: who pings without reading is not read from either.
#[tokio::test(flavor = "multi_thread")]
async fn who_pings_without_reading_is_not_read_from() {
    let hub = start().await;
    let mut tcp = hub.raw_websocket().await;
    let many = client_frame(9, &[7; 125]).repeat(1_000);
    flood(&mut tcp, &many, 64 * 1024 * 1024).await;
    drop(tcp);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pings_are_answered_and_keep_a_quiet_client() {
    let hub = start_with(|config| (config.heartbeat_ms, config.silence_max_ms) = (40, 160)).await;
    let mut ws = hub.websocket().await;
    ws.stream.send(Frame::Ping(vec![7].into())).await.unwrap();
    let (mut pings, mut pongs) = (0, 0);
    // Twelve heartbeats are three times the silence that would end it.
    while pings < 12 {
        match soon("a heartbeat", ws.stream.next()).await.unwrap().unwrap() {
            Frame::Ping(_) => pings += 1,
            Frame::Pong(data) => pongs += usize::from(data.as_ref() == [7]),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(pongs, 1);
    ws.register("a").await;
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_peer_is_closed() {
    let hub = start_with(|config| (config.heartbeat_ms, config.silence_max_ms) = (40, 160)).await;
    let mut tcp = hub.raw_websocket().await;
    let mut pings = 0;
    loop {
        match server_frame(&mut tcp).await {
            (9, _) => pings += 1,
            (8, payload) => {
                assert_eq!(payload[..2], 1011_u16.to_be_bytes());
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(pings >= 2, "{pings}");
    let sessions = hub.hub.sessions();
    eventually("the end of the session", || sessions.is_empty()).await;
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_delivers_what_is_in_flight_and_says_1001() {
    let mut hub = start().await;
    let mut ws = hub.websocket().await;
    ws.register("a").await;
    for n in 0..200 {
        let request = envelope(&n.to_string(), "RECORD", "a", finding(&format!("unit {n}"))).to_string();
        ws.stream.feed(Frame::text(request)).await.unwrap();
    }
    ws.stream.flush().await.unwrap();
    let mut replies = 0;
    let code = loop {
        match ws.frame().await {
            Some(Frame::Text(text)) => {
                let reply: Value = serde_json::from_str(&text).unwrap();
                assert_eq!(reply["id"], replies.to_string());
                replies += 1;
                if replies == 1 {
                    hub.close();
                }
            }
            Some(Frame::Close(Some(close))) => break u16::from(close.code),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(code, 1001);
    hub.drain().await;
    let filter = akashik_hub::hub::UnitFilter { limit: 1_000, ..Default::default() };
    let units = hub.hub.field(None).unwrap().view().units(&filter, None).expect("a log");
    assert_eq!(units["units"].as_array().unwrap().len(), replies, "what was recorded was answered");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_with_a_hundred_idle_sockets_is_quick() {
    let mut hub = start().await;
    let mut sockets = Vec::new();
    for _ in 0..100 {
        sockets.push(hub.websocket().await);
    }
    hub.close();
    for socket in &mut sockets {
        assert_eq!(socket.close_code().await, 1001);
    }
    drop(sockets);
    hub.drain().await;
    assert!(hub.hub.sessions().is_empty());
    hub.stop().await;
}

/// Ends a connection without a word: the peer gets a reset.
fn kill(tcp: TcpStream) {
    tcp.set_zero_linger().unwrap();
    drop(tcp);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_connections_that_were_killed() {
    let hub = start().await;
    for n in 0..200 {
        let mut tcp = hub.raw_websocket().await;
        let agent = format!("a-{n}");
        let register = envelope("reg", "REGISTER", &agent, json!({ "id": agent, "role": "x" })).to_string();
        tcp.write_all(&client_frame(1, register.as_bytes())).await.unwrap();
        match n % 3 {
            0 => drop(server_frame(&mut tcp).await),
            1 => tcp.write_all(&client_frame(1, &sized(900))[..500]).await.unwrap(),
            _ => {}
        }
        kill(tcp);
    }
    let sessions = hub.hub.sessions();
    eventually("the end of all sessions", || sessions.is_empty()).await;
    assert_eq!(count_connections(&hub).await, "akashik_connections{door=\"websocket\"} 0");
    hub.stop().await;
}

async fn count_connections(hub: &Running) -> String {
    let text = hub.get("/metrics").await.text();
    text.lines()
        .find(|line| line.contains("door=\"websocket\"} ") && line.contains("connections"))
        .unwrap()
        .to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_connection_starts_the_grace_time() {
    let hub = start_with(|config| config.grace_ms = 100).await;
    let mut ws = hub.websocket().await;
    ws.register("a").await;
    drop(ws);
    soon("the agent to fail", async {
        while hub.get("/v1/agents").await.json()["agents"][0]["status"] != "failed" {}
    })
    .await;
    let mut ws = hub.websocket().await;
    ws.register("a").await;
    hub.stop().await;
}

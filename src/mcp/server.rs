//! The MCP server: one for each session, or for each request of a client that keeps none.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Extensions,
    GetPromptRequestParams, GetPromptResponse, Implementation, JsonObject, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ResourceContents,
    ServerCapabilities, ServerConfig, SubscribeRequestParams, SubscriptionFilter, Tool,
    UnsubscribeRequestParams,
};
use rmcp::service::{Peer, RequestContext, RoleServer, SubscriptionContext};
use rmcp::{ServerHandler, model::ResourceUpdatedNotificationParam};
use serde_json::{Map, Value, json};
use tokio::task::AbortHandle;

use super::backend::{Backend, Call, Watch};
use super::{guide, resources, text, tools};
use crate::limits::MCP_WATCHED_MAX;
use crate::protocol::{ErrorBody, ErrorCode, Operation, Refusal};

/// Speaks MCP on top of a backend.
pub struct Server<B> {
    backend: Arc<B>,
    /// Who speaks in this session, once that is known.
    agent: Mutex<Option<String>>,
    watching: Watching,
}

/// The resources that a session watches.
#[derive(Default)]
struct Watching {
    uris: Arc<Mutex<BTreeSet<String>>>,
    /// Tells of changes; ends with the session.
    teller: tokio::sync::Mutex<Option<AbortHandle>>,
}

impl Drop for Watching {
    fn drop(&mut self) {
        if let Some(teller) = self.teller.get_mut().take() {
            teller.abort();
        }
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<B: Backend> Server<B> {
    /// A server for one session. `agent` speaks in it until another one registers.
    pub fn new(backend: Arc<B>, agent: Option<String>) -> Self {
        Self { backend, agent: Mutex::new(agent), watching: Watching::default() }
    }

    fn known_agent(&self) -> Option<String> {
        held(&self.agent).clone()
    }

    /// Asks what a tool asks.
    async fn ask(
        &self,
        operation: Operation,
        arguments: JsonObject,
        from: &Extensions,
    ) -> Result<Value, Box<ErrorBody>> {
        let call = self.call(operation, arguments).map_err(|no| Box::new(no.body(Some(operation))))?;
        // Of whoever leaves there is nothing to remember, whoever sent it.
        let agent = match operation {
            Operation::Deregister => {
                call.payload.get(tools::AGENT_ID).and_then(Value::as_str).map(str::to_owned)
            }
            _ => Some(call.agent_id.clone()),
        };
        let answer = self.backend.operate(call, from).await?;
        if let Some(agent) = agent {
            self.remember(operation, agent, &answer);
        }
        Ok(answer)
    }

    /// The message that a tool's arguments make.
    fn call(&self, operation: Operation, mut arguments: JsonObject) -> Result<Call, Refusal> {
        let message_id = named(&mut arguments, tools::MESSAGE_ID)?;
        let session_id = named(&mut arguments, tools::SESSION_ID)?;
        let given = named(&mut arguments, tools::AGENT_ID)?;
        let known = self.known_agent();
        let agent_id = match operation {
            Operation::Register => given.or_else(|| {
                // What is no text is left to the Field's own words about it.
                Some(arguments.get("id").and_then(Value::as_str).unwrap_or("unknown").to_owned())
            }),
            // Who leaves is part of the request; who sends it is whoever speaks here.
            Operation::Deregister => {
                let leaving = given.or_else(|| known.clone());
                if let Some(leaving) = &leaving {
                    arguments.insert(tools::AGENT_ID.to_owned(), json!(leaving));
                }
                known.or(leaving)
            }
            _ => given.or(known),
        };
        let agent_id = agent_id.ok_or_else(|| {
            Refusal::new(
                ErrorCode::AgentNotRegistered,
                "Nothing says who asks: this session has registered no agent.",
                "Call akashik_register first; if you registered in an earlier session, pass your id as agent_id.",
            )
            .with("key", json!(tools::AGENT_ID))
        })?;
        Ok(Call { operation, agent_id, session_id, message_id, payload: arguments })
    }

    /// Remembers who speaks: whoever registered last, or else the first who was named and let in.
    fn remember(&self, operation: Operation, agent: String, answer: &Value) {
        let mut known = held(&self.agent);
        match operation {
            Operation::Register if answer["status"] == "registered" => *known = Some(agent),
            Operation::Register => {}
            Operation::Deregister => {
                known.take_if(|known| *known == agent);
            }
            _ => {
                known.get_or_insert(agent);
            }
        }
    }

    /// Begins to tell the peer of what changes, where nobody does yet.
    async fn tell_of_changes(&self, peer: &Peer<RoleServer>) -> Result<(), ErrorData> {
        let mut teller = self.watching.teller.lock().await;
        if teller.as_ref().is_some_and(|teller| !teller.is_finished()) {
            return Ok(());
        }
        let mut watch = self.backend.watch().await.map_err(|no| unreadable(&no))?;
        let (peer, uris) = (peer.clone(), Arc::clone(&self.watching.uris));
        let telling = tokio::spawn(async move {
            while let Some(events) = watch.next().await {
                let changed = resources::touched(&events);
                let watched: Vec<_> = held(&uris).intersection(&changed).cloned().collect();
                for uri in watched {
                    let told = peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await;
                    if told.is_err() {
                        return;
                    }
                }
            }
        });
        *teller = Some(telling.abort_handle());
        Ok(())
    }
}

/// Takes a text out of the arguments that is none of the request's own.
fn named(arguments: &mut Map<String, Value>, key: &str) -> Result<Option<String>, Refusal> {
    match arguments.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => {
            crate::protocol::check_id(key, &text)?;
            Ok(Some(text))
        }
        Some(_) => Err(Refusal::invalid(
            key,
            format!("{key} is not a string."),
            format!("Send {key} as a string, or leave it out."),
        )),
    }
}

/// A resource that cannot be read, with the hub's own words.
fn unreadable(body: &ErrorBody) -> ErrorData {
    let data = serde_json::to_value(body).ok();
    if body.code == ErrorCode::UnitNotFound {
        return ErrorData::resource_not_found(body.to_string(), data);
    }
    ErrorData::internal_error(body.to_string(), data)
}

fn no_resource(uri: &str) -> ErrorData {
    let said: String = uri.chars().take(120).collect();
    let known = "akashik://field/status, akashik://conflicts and akashik://units/{id}";
    ErrorData::resource_not_found(format!("There is no resource {said:?}; there are {known}."), None)
}

impl<B: Backend> ServerHandler for Server<B> {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .build();
        let us = Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
            .with_title("Akashik, shared memory of a team of agents");
        ServerConfig::new(capabilities).with_server_info(us).with_instructions(guide::INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::serving(&self.backend.served().await)))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::named(name).map(|(_, tool)| tool.clone())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some((operation, _)) = tools::named(&request.name) else {
            let said: String = request.name.chars().take(80).collect();
            let message = format!("There is no tool {said:?}. The tools are: {}.", tools::names());
            return Err(ErrorData::invalid_params(message, None));
        };
        let arguments = request.arguments.unwrap_or_default();
        let result = match self.ask(operation, arguments, &context.extensions).await {
            Ok(answer) => {
                let told = text::told(operation, &answer);
                let mut result = CallToolResult::structured(answer);
                result.content = vec![ContentBlock::text(told)];
                result
            }
            // No structured content: it would have to fit the schema of the tool's answers.
            Err(body) => {
                let body = serde_json::to_string(&body).unwrap_or_else(|_| body.to_string());
                CallToolResult::error(vec![ContentBlock::text(body)])
            }
        };
        Ok(result.into())
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(vec![guide::prompt()]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if request.name != guide::PROMPT {
            let said: String = request.name.chars().take(80).collect();
            let message = format!("There is no prompt {said:?}; there is {:?}.", guide::PROMPT);
            return Err(ErrorData::invalid_params(message, None));
        }
        Ok(guide::told(request.arguments.as_ref()).into())
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(resources::listed()))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let sight = resources::sight(&request.uri).ok_or_else(|| no_resource(&request.uri))?;
        let agent = self.known_agent();
        let shown = self.backend.look(sight, agent.as_deref(), &context.extensions).await;
        let shown = shown.map_err(|no| unreadable(&no))?;
        let contents = ResourceContents::text(shown, request.uri).with_mime_type(resources::JSON);
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        resources::sight(&request.uri).ok_or_else(|| no_resource(&request.uri))?;
        // Telling begins before the answer, so that nothing in between is missed.
        self.tell_of_changes(&context.peer).await?;
        let mut watched = held(&self.watching.uris);
        if watched.len() >= MCP_WATCHED_MAX && !watched.contains(&request.uri) {
            let message =
                format!("This session watches {MCP_WATCHED_MAX} resources already; unsubscribe from some.");
            return Err(ErrorData::invalid_params(message, None));
        }
        watched.insert(request.uri);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        held(&self.watching.uris).remove(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let uris = requested.resource_subscriptions.iter().flatten();
        let ours = uris.filter(|uri| resources::sight(uri).is_some()).take(MCP_WATCHED_MAX).cloned();
        Some(SubscriptionFilter::builder().resource_subscriptions(ours).build())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let wanted: BTreeSet<String> =
            subscription.accepted().resource_subscriptions.iter().flatten().cloned().collect();
        let mut watch = self.backend.watch().await.map_err(|no| unreadable(&no))?;
        // What happened between the acknowledgment and here is told of no other way: everything may have changed.
        for uri in &wanted {
            if subscription.sink().notify_resource_updated(uri).await.is_err() {
                return Ok(());
            }
        }
        loop {
            let events = tokio::select! {
                events = watch.next() => events,
                () = subscription.cancelled() => return Ok(()),
            };
            let Some(events) = events else { return Ok(()) };
            for uri in resources::touched(&events).intersection(&wanted) {
                if subscription.sink().notify_resource_updated(uri).await.is_err() {
                    return Ok(());
                }
            }
        }
    }
}

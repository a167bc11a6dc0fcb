//! The schemas against the readers: neither knows a key that the other does not, and both refuse the same.

use std::collections::BTreeSet;

use super::*;
use crate::protocol::keys::asked;
use crate::protocol::{Limits, Request};

fn operations() -> impl Iterator<Item = Operation> {
    Operation::ALL.into_iter().filter(|operation| of_operation(*operation).is_some())
}

/// Those whose requests this hub reads.
fn read_here() -> impl Iterator<Item = Operation> {
    operations().filter(|operation| operation.served_from_level().is_some())
}

fn read(operation: Operation, payload: &Value) -> Result<Request, crate::protocol::Refusal> {
    let Value::Object(map) = payload.clone() else { panic!("an example is an object") };
    Request::read(operation, "researcher-01", map, &Limits::default(), 3)
}

fn request_schema(operation: Operation) -> jsonschema::Validator {
    let (name, _) = of_operation(operation).unwrap();
    jsonschema::validator_for(named(name).unwrap()).unwrap()
}

/// Every key that a plain schema names, with its path. What stands in lists is named as its reader names it: alone.
fn keys(schema: &Map<String, Value>, path: &str, found: &mut BTreeSet<String>) {
    for (key, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        found.insert(format!("{path}{key}"));
        if let Some(inner) = property.as_object() {
            keys(inner, &format!("{path}{key}."), found);
        }
        if let Some(item) = property.get("items").and_then(Value::as_object) {
            keys(item, "", found);
        }
    }
}

#[test]
fn schemas_and_readers_know_the_same_keys() {
    for operation in read_here() {
        let _ = asked::taken();
        let _ = read(operation, &example(operation).unwrap());
        // Of a list of objects, each reads its keys anew, and alone.
        let asked = asked::taken();
        let mut known = BTreeSet::new();
        keys(&plain_request(operation).unwrap(), "", &mut known);
        known.extend(known.contains("confidence").then(|| "confidence.reasoning".to_owned()));
        let unknown: Vec<_> = asked.difference(&known).collect();
        assert!(unknown.is_empty(), "{operation} reads {unknown:?}, which its schema does not name");
        let unread: Vec<_> = known.difference(&asked).collect();
        assert!(unread.is_empty(), "the schema of {operation} names {unread:?}, which nobody reads");
    }
}

#[test]
fn examples_are_read_and_valid() {
    for operation in operations() {
        let example = example(operation).unwrap();
        if let Err(error) = request_schema(operation).validate(&example) {
            panic!("{operation}: {error}");
        }
    }
    for operation in read_here() {
        read(operation, &example(operation).unwrap()).unwrap_or_else(|no| panic!("{operation}: {no}"));
    }
}

/// Puts another value in the place of each value of a document, one at a time.
fn mutations(value: &Value, with: &Value) -> Vec<(String, Value)> {
    fn paths(value: &Value, path: &str, found: &mut Vec<String>) {
        let Value::Object(map) = value else { return };
        for (key, inner) in map {
            let path = format!("{path}/{key}");
            paths(inner, &path, found);
            found.push(path);
        }
    }
    let mut found = Vec::new();
    paths(value, "", &mut found);
    let change = |path: String| {
        let mut changed = value.clone();
        *changed.pointer_mut(&path).unwrap() = with.clone();
        (path, changed)
    };
    found.into_iter().map(change).collect()
}

#[test]
fn what_the_schema_refuses_the_reader_refuses_and_the_other_way_round() {
    let wrong =
        [json!(-1), json!("x\u{0}"), json!([1]), json!({}), json!(1e300), json!(true), json!([]), json!("")];
    let mut compared = 0;
    for operation in read_here() {
        let schema = request_schema(operation);
        for with in &wrong {
            for (path, changed) in mutations(&example(operation).unwrap(), with) {
                let (valid, taken) = (schema.is_valid(&changed), read(operation, &changed));
                // A schema says nothing of control characters and of blanks, and of what two places say together.
                let beyond =
                    [json!("x\u{0}"), json!("")].contains(with) || path == "/id" || path == "/confidence";
                if beyond && valid {
                    continue;
                }
                assert_eq!(valid, taken.is_ok(), "{operation} with {path} = {with}: {taken:?}");
                compared += 1;
            }
        }
    }
    assert!(compared > 300, "only {compared} compared");
}

#[test]
fn plain_requests_have_no_references_and_no_null() {
    for operation in operations() {
        let text = Value::Object(plain_request(operation).unwrap()).to_string();
        for unwanted in ["$ref", "\"null\"", "uint64", "reasoning"] {
            assert!(!text.contains(unwanted), "{unwanted} in the schema of {operation}: {text}");
        }
    }
}

#[test]
fn every_schema_is_one() {
    for name in names() {
        let schema = named(name).unwrap();
        assert!(jsonschema::meta::is_valid(schema), "{name}");
        assert_eq!(schema["type"], "object", "{name}: clients ask for an object at the top");
        jsonschema::validator_for(schema).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

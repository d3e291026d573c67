//! An axum service with one charge at a time for each order, in any number of processes. Other requests get 409.
//!     LOCKTENDER_URL=redis://localhost PORT=3000 cargo run      (in this directory)
//!     curl --request POST localhost:3000/orders/42/charge
//! SIGTERM shuts it down gracefully: it finishes its requests, or cancels them after five seconds. Both release their locks.

use std::env;
use std::error::Error;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::{StatusCode, header::RETRY_AFTER};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router, routing::post};
use locktender::{Client, Code, RunError};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

struct Refused(locktender::Error);

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let status = match self.0.code() {
            Code::AcquireTimeout => StatusCode::CONFLICT,
            Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        (status, [(RETRY_AFTER, "1")], Json(json!({ "code": self.0.code().as_str() }))).into_response()
    }
}

/// If the customer hangs up, axum drops this future, and with it the wait or the hold.
async fn charge(State(client): State<Client>, Path(order): Path<String>) -> Result<Json<Value>, Refused> {
    let lock = client.lock(format!("orders:{order}")).wait(Duration::from_millis(100));
    let charged = lock.with(async |hold| {
        tokio::select! {
            () = sleep(millis("CHARGE_MS", 300)) => {} // stands for the payment provider
            _ = hold.lost() => {} // `with` then fails
        }
        Ok(hold.fence()) // send the fence along with each write
    });
    let fence = charged.await.map_err(|error: RunError<locktender::Error>| Refused(error.into()))?;
    Ok(Json(json!({ "order": order, "fence": fence })))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = Client::from_env()?;
    let app = Router::new().route("/orders/{order}/charge", post(charge)).with_state(client.clone());
    let listener = TcpListener::bind(("127.0.0.1", env::var("PORT").map_or(Ok(0), |port| port.parse())?)).await?;
    let (mut end, mut late) = (signal(SignalKind::terminate())?, signal(SignalKind::terminate())?);
    println!("http://{}", listener.local_addr()?);

    let server = axum::serve(listener, app).with_graceful_shutdown(async move { _ = end.recv().await });
    tokio::select! {
        served = server => served?,
        () = async { late.recv().await; sleep(millis("GRACE_MS", 5_000)).await } => {} // a charge takes too long
    }
    client.close().await?; // frees what is still held
    Ok(())
}

fn millis(name: &str, usual: u64) -> Duration {
    Duration::from_millis(env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(usual))
}

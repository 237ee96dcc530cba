//! What applications do with lapin; each scenario prints its name and how it went.

mod client;
mod scenarios;

use std::error::Error;
use std::future::Future;
use std::time::Duration;

use async_io::Timer;
use futures_lite::future;
use lapin::{Connection, ConnectionProperties};

const SCENARIO_LIMIT: Duration = Duration::from_secs(15);

pub type Outcome = Result<(), Box<dyn Error>>;

fn main() {
    let url = std::env::args().nth(1).expect("the URL of a broker");
    async_global_executor::block_on(scenarios::run_all(&url));
}

/// Runs a scenario on a connection of its own and prints what came of it.
pub async fn report<Scenario, Run>(url: &str, name: &str, scenario: Scenario)
where
    Scenario: FnOnce(Connection) -> Run,
    Run: Future<Output = Outcome>,
{
    let limit = async {
        Timer::after(SCENARIO_LIMIT).await;
        Err(format!("not finished within {:?}", SCENARIO_LIMIT).into())
    };
    let outcome = match future::or(on_connection(url, scenario), limit).await {
        Ok(()) => "passed".to_string(),
        Err(error) => error.to_string().replace('\n', " "),
    };
    println!("{}\t{}", name, outcome);
}

async fn on_connection<Scenario, Run>(url: &str, scenario: Scenario) -> Outcome
where
    Scenario: FnOnce(Connection) -> Run,
    Run: Future<Output = Outcome>,
{
    scenario(Connection::connect(url, ConnectionProperties::default()).await?).await
}

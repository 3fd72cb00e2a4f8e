//! What can be typed after `toll load` and `toll merge`, spelled as in the tools that people come from.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};
use toll_load::{Part, Resolve};

use super::deliver::OutputChoice;
use super::quantity::{self, LocalAddresses, Ramp, Staircase};
use super::threshold::Threshold;

const EXAMPLES: &str = "\
Coming from
  hey     hey -n 1000 -c 50 -m POST -T application/json -D body.json URL
          toll load -n 1000 -c 50 -m POST -T application/json -D body.json URL
  wrk     wrk -t2 -c100 -d30s URL
          toll load --threads 2 -c 100 -z 30s URL
  wrk2    wrk2 -t2 -c100 -d30s -R2000 URL
          toll load --threads 2 -c 100 -z 30s --rate 2000 URL
  vegeta  vegeta attack -rate=300/m -duration=1m -targets=targets.txt
          toll load --rate 300/m -z 1m --targets targets.txt --output vegeta
  oha     oha -q 500 --latency-correction -z 10s URL
          toll load --rate 500 -z 10s URL
  h2load  h2load -c 5 -m 10 -D 30 URL
          toll load --http2 -c 5 --streams 10 -z 30s URL
  k6      ramping-vus: stages 30s:100, 1m:100, 10s:0, a sleep(1) at the end
          toll load --stages 30s:100,1m:100,10s:0 --think-time 1s URL
  k6      ramping-arrival-rate
          toll load --rate-stages 30s:1000,1m:1000,10s:0 URL
  k6      thresholds: { http_req_duration: ['p(99)<200'] }
          toll load --fail-if 'p99>=200ms' URL
  JMeter  a stepping thread group of 1, 5, 10, 20 users, 5 minutes each
          toll load --steps 1,5,10,20x5m URL

Three machines, one load: on the first of them, and alike on the others,
  toll load --rate 30000 -z 1m --part 1/3 --start-at 2026-11-21T12:00:00Z \\
    --output json=1.json URL
and then: toll merge 1.json 2.json 3.json

Exit status: 0 done, 1 it could not run or not one request was answered,
2 wrong command line, 4 the schedule was not kept: requests of an open loop
were never sent, 99 a --fail-if was met (whatever the schedule), 130
interrupted (the summary tells what was measured until then).";

/// What an open loop decides by itself.
const OF_CLIENTS: [&str; 4] = ["stages", "steps", "think_time", "parallel"];

/// Arguments of `toll load`.
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLES,
    group = ArgGroup::new("arrivals").multiple(false).args(["rate", "rate_stages", "per_client"]),
    group = ArgGroup::new("shape").multiple(false).args(["stages", "rate_stages", "steps"]),
    group = ArgGroup::new("protocol").multiple(false).args(["http2", "grpc"]),
)]
pub struct LoadArguments {
    /// Where the requests go, in equal shares; without a scheme `http://` is meant
    #[arg(value_name = "URL", required_unless_present = "targets")]
    pub urls: Vec<String>,
    /// How much is sent, and when.
    #[command(flatten)]
    pub shape: ShapeArguments,
    /// What is sent.
    #[command(flatten)]
    pub request: RequestArguments,
    /// What it is sent on.
    #[command(flatten)]
    pub connection: ConnectionArguments,
    /// How the engine does it.
    #[command(flatten)]
    pub engine: EngineArguments,
    /// What becomes of the result.
    #[command(flatten)]
    pub result: ResultArguments,
    /// No progress and no notes on stderr
    #[arg(long, help_heading = "Result")]
    pub quiet: bool,
}

/// How much is sent, and when.
#[derive(Debug, Args)]
#[command(next_help_heading = "Load: clients that wait for their answers (closed loop)")]
pub struct ShapeArguments {
    /// Clients, each with a connection and one request at a time [default: 50]
    #[arg(short, long, short_alias = 'u', visible_alias = "vus", value_name = "N",
          value_parser = quantity::at_least_one::<u32>)]
    pub connections: Option<u32>,
    /// Clients over time: ramp to each count in the time before it, as k6's stages; from -c, or 1
    #[arg(long, value_name = "TIME:N,…", value_parser = quantity::client_stages,
          conflicts_with_all = ["requests", "duration"])]
    pub stages: Option<Ramp>,
    /// A staircase: so many clients, each count held as long
    #[arg(long, value_name = "N,N,…xTIME", value_parser = quantity::steps,
          conflicts_with_all = ["requests", "duration", "connections"])]
    pub steps: Option<Staircase>,
    /// Pause of a client between its answer and its next request
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    pub think_time: Option<Duration>,
    /// Requests that a client sends at once, waiting for all of their answers
    #[arg(long, value_name = "K", value_parser = quantity::at_least_one::<u32>)]
    pub parallel: Option<u32>,

    /// Arrivals: 1000, 1000/s, 300/m; -c then bounds the connections, as for wrk2
    #[arg(long, value_name = "RATE", value_parser = quantity::rate,
          conflicts_with_all = OF_CLIENTS, help_heading = OPEN)]
    pub rate: Option<f64>,
    /// Arrivals over time: ramp to each rate in the time before it; from 0
    #[arg(long, value_name = "TIME:R,…", value_parser = quantity::rate_stages,
          conflicts_with_all = ["requests", "duration", "think_time", "parallel"], help_heading = OPEN)]
    pub rate_stages: Option<Ramp>,
    /// Arrivals for each of the -c clients, as hey's -q: an open loop of N x c (oha's -q is --rate)
    #[arg(short = 'q', value_name = "N", value_parser = quantity::rate,
          conflicts_with_all = OF_CLIENTS, help_heading = OPEN)]
    pub per_client: Option<f64>,
    /// Exponential gaps between arrivals instead of even ones
    #[arg(long, requires = "arrivals", help_heading = OPEN)]
    pub poisson: bool,
    /// Connections to each host at most; one more request waits, and that is counted [default: 1000]
    #[arg(long, value_name = "N", value_parser = quantity::at_least_one::<u32>, requires = "arrivals",
          conflicts_with_all = ["connections", "per_client"], help_heading = OPEN)]
    pub max_connections: Option<u32>,

    /// End after so many requests
    #[arg(short = 'n', long, value_name = "N", value_parser = quantity::at_least_one::<u64>,
          conflicts_with = "duration", help_heading = LENGTH)]
    pub requests: Option<u64>,
    /// End after this time: 30s, 5m, 1m30s [default: 10s]
    #[arg(short = 'z', long, value_name = "TIME", value_parser = quantity::some_time, help_heading = LENGTH)]
    pub duration: Option<Duration>,
    /// Load that is not counted, before the rest
    #[arg(long, value_name = "TIME", value_parser = quantity::duration, help_heading = LENGTH)]
    pub warm_up: Option<Duration>,
    /// Let the warm-up go on until the figures are stable, at most so long; not for a --part
    #[arg(long, value_name = "TIME", value_parser = quantity::duration, help_heading = LENGTH)]
    pub warm_up_max: Option<Duration>,
}

const OPEN: &str = "Load: arrivals that do not wait for answers (open loop)";
const LENGTH: &str = "Length";

/// What is sent.
#[derive(Debug, Args)]
#[command(next_help_heading = "Request")]
pub struct RequestArguments {
    /// Method [default: GET, or POST with a body]
    #[arg(short, long, short_alias = 'X', alias = "request", value_name = "METHOD")]
    pub method: Option<String>,
    /// A header; may be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    pub headers: Vec<String>,
    /// Body
    #[arg(short = 'd', long, alias = "data", value_name = "TEXT", conflicts_with = "body_file")]
    pub body: Option<String>,
    /// Body, from a file
    #[arg(short = 'D', long, value_name = "FILE")]
    pub body_file: Option<PathBuf>,
    /// The header content-type
    #[arg(short = 'T', long, value_name = "TYPE")]
    pub content_type: Option<String>,
    /// The header accept
    #[arg(short = 'A', long, value_name = "TYPE")]
    pub accept: Option<String>,
    /// Basic authentication
    #[arg(short = 'a', long, value_name = "USER:PASSWORD")]
    pub auth: Option<String>,
    /// Requests from a file in vegeta's forms, http or JSON lines; - is stdin. A line `# weight: 3`
    /// before a target, or a key "weight", gives it three shares
    #[arg(long, value_name = "FILE", conflicts_with_all = ["urls", "method"])]
    pub targets: Option<PathBuf>,
    /// Fill in {{counter}}, {{random}}, {{random.1.6}} in paths, header values and bodies
    #[arg(long)]
    pub template: bool,
    /// Fill in {{csv.COLUMN}}, too, from a CSV file with a header line, row by row
    #[arg(long, value_name = "FILE")]
    pub rows: Option<PathBuf>,
}

/// What requests are sent on.
#[derive(Debug, Args)]
#[command(next_help_heading = "Connection")]
pub struct ConnectionArguments {
    /// HTTP/2: by ALPN over TLS, else with prior knowledge
    #[arg(long)]
    pub http2: bool,
    /// Unary gRPC calls; the body is the message
    #[arg(long)]
    pub grpc: bool,
    /// Requests at a time on one connection, as h2load's -m: -c connections then serve N x c clients
    #[arg(long, value_name = "N", value_parser = quantity::at_least_one::<u32>, requires = "protocol")]
    pub streams: Option<u32>,
    /// A new connection for each request
    #[arg(long)]
    pub disable_keepalive: bool,
    /// Connect to this Unix socket, whatever the URL's host
    #[arg(long, value_name = "PATH")]
    pub unix_socket: Option<PathBuf>,
    /// Address to use for a host and port, as for curl; may be repeated
    #[arg(long, value_name = "HOST:PORT:ADDRESS", value_parser = quantity::resolve)]
    pub resolve: Vec<Resolve>,
    /// Local addresses to connect from in turn: 127.0.0.2-127.0.0.9,10.0.0.1; each gives about 28,000
    /// connections
    #[arg(long, value_name = "IP,…", value_parser = quantity::local_addresses)]
    pub laddr: Vec<LocalAddresses>,
    /// Accept any certificate
    #[arg(short = 'k', long)]
    pub insecure: bool,
    /// Certificates to trust instead of the system's, PEM
    #[arg(long, value_name = "FILE")]
    pub cacert: Option<PathBuf>,
    /// The client's own certificate, PEM
    #[arg(long, value_name = "FILE")]
    pub cert: Option<PathBuf>,
    /// Its key, PEM [default: the file of --cert]
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// Name to ask for and to verify instead of the URL's host
    #[arg(long, value_name = "NAME")]
    pub server_name: Option<String>,
    /// A full TLS handshake for each connection
    #[arg(long)]
    pub no_resumption: bool,
    /// A request without an answer after this time has failed
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = quantity::some_time)]
    pub timeout: Duration,
}

/// How the engine does it.
#[derive(Debug, Args)]
#[command(next_help_heading = "Engine")]
pub struct EngineArguments {
    /// Event loops, each with a thread of its own
    #[arg(long, value_name = "N", default_value = "1", value_parser = quantity::at_least_one::<u32>)]
    pub threads: u32,
    /// When nothing is ready: sleep (least CPU), or look again (a whole core)
    #[arg(
        long,
        value_enum,
        value_name = "block|spin",
        default_value = "block",
        hide_possible_values = true
    )]
    pub idle: IdleChoice,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
    /// Carry one share of the load: 1/3 on the first of three machines
    #[arg(long, value_name = "I/N", value_parser = quantity::part)]
    pub part: Option<Part>,
    /// Begin at this instant (RFC 3339), as on the other machines
    #[arg(long, value_name = "TIME")]
    pub start_at: Option<jiff::Timestamp>,
}

/// What an event loop does when nothing is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum IdleChoice {
    /// Sleep: the least CPU time
    Block,
    /// Look again at once: the highest throughput, and a whole core
    Spin,
}

/// What becomes of the result.
#[derive(Debug, Args)]
#[command(next_help_heading = "Result")]
pub struct ResultArguments {
    /// Another form: hey, wrk, k6, vegeta, jmeter-csv, csv, json, hdr or prometheus. With =FILE beside
    /// the summary, else instead of it; may be repeated
    #[arg(short, long, value_name = "FORM[=FILE]")]
    pub output: Vec<OutputChoice>,
    /// End with status 99 when this is so: p99>20ms, mean>=5ms, service-p99.9>1s, rate<1000,
    /// errors>0, error-rate>1%, non-2xx>0; may be repeated
    #[arg(long, value_name = "CONDITION")]
    pub fail_if: Vec<Threshold>,
}

/// Arguments of `toll merge`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  toll merge 1.json 2.json 3.json --fail-if 'p99>20ms'")]
pub struct MergeArguments {
    /// What `toll load --part I/N --output json=FILE` wrote, the file of every part
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// What becomes of the result.
    #[command(flatten)]
    pub result: ResultArguments,
}

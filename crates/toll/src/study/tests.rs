use std::collections::BTreeSet;

use indexmap::IndexMap;
use insta::assert_snapshot;
use miette::{GraphicalReportHandler, GraphicalTheme};
use proptest::prelude::*;
use serde_json::Value;

use super::model::Closed;
use super::model::Method;
use super::quantity::{Binary, Name, Share, TimeSpan};
use super::retired::{PLAYED, RETIRED};
use super::schema::{Keys, Shape, example_of};
use super::*;

/// A study without fault; each test breaks a part of it.
const SOUND: &str = "\
study: sound
app:
  entry: client
  services:
    client: {port: 9000, calls: [server]}
    server:
      port: 9999
      program: {built_in: {reply: {bytes: 5}, stall: {every: 1s, for: 100ms}}}
variants:
  bare: {}
  envoy: {sidecar: {proxy: envoy, mtls: strict}}
  mesher: {sidecar: {proxy: mesher, binary: \"${MESHER_BIN}\"}}
baseline: bare
loads:
  same-rate: {open: {rate: 50% of capacity}, slice: 400ms}
  flat-out:
    closed: {connections: 36}
    requests: 1000
rounds: 8
settle: {slice: 250ms, max: 3s}
reference:
  source: a paper
  figures:
    bare: {flat-out: {throughput_per_s: 2303.69}}
";

/// A chain behind a gateway, with a database; each test breaks a part of it.
const CHAIN: &str = "\
study: chain
app:
  entry: ingress
  gateways:
    ingress: {port: 8080, to: front}
  services:
    front: {port: 8081, calls: [back], replicas: 2, program: {built_in: {reply: {relay: true}}}}
    back:
      port: 8083
      program:
        built_in:
          runtime: spring
          postgres:
            database: orders
            read: SELECT 1 AS one
            write: INSERT INTO log VALUES ($1)
            connections: 4
  databases:
    orders:
      port: 5432
      group: data
      program:
        postgres:
          seed: CREATE TABLE log (line text)
          written: SELECT count(line), count(DISTINCT line) FROM log
variants: {bare: {}, envoy: {sidecar: {proxy: envoy}}}
baseline: bare
loads:
  reads: {closed: {connections: 8}, requests: 1000, request: {path: /log}}
  writes:
    open: {rate: 500/s}
    slice: 400ms
    request: {method: POST, path: /log, content_type: text/plain, body: 'n {{counter}}'}
settle: {slice: 1s, max: 20s}
paper: {loads: {reads: {requests: 1000000}}}
spring: {settle: {max: 30s}}
reference:
  source: a paper
  figures:
    bare: {reads: {latency_ms: {p95: 8.2}, cpu_millicores: {front-1: 11, back: 10, orders: 3}}}
  recomputed:
    - {variant: envoy, load: reads, derived: cpu_change, recomputed: 15, because: It was wrong.}
";

/// Two JVMs, an agent in one variant, virtual users; each test breaks a part of it.
const TRACED: &str = "\
study: traced
app:
  entry: gateway
  services:
    gateway:
      port: 8080
      program: {petclinic: {part: gateway, heap_mib: 256}}
      calls: [vets]
      metrics: http://localhost:9080/metrics
      series: [jvm_threads_current]
    vets:
      port: 8081
      program: {petclinic: {part: vets}}
variants:
  baseline: {}
  agent: {java_agent: {kind: opentelemetry, settings: {otel.logs.exporter: none, otel.jmx.enabled: false}}}
  easeagent: {java_agent: {kind: easeagent, jar: \"${EASEAGENT}\"}}
baseline: baseline
loads:
  same-rate: {open: {rate: 500/s}, slice: 400ms, spans: {gateway: 1, vets: 9}}
  users:
    vus: {users: 320, ramp: 1s, hold: 4s, ramp_down: 500ms, parallel: 4, scale: {capacity: 1526/s}}
paper: {slice: 1m, vus: {ramp: 50s, hold: 10m, ramp_down: 50s}}
reference:
  source: a paper
  figures:
    agent: {users: {cpu_load_percent: {vets: 65.2}, heap_mib: {vets: 284}}}
  recomputed:
    - {variant: agent, load: users, derived: heap_difference, pod: vets, recomputed: 48, because: So.}
    - {variant: agent, load: users, derived: throughput_change, recomputed: -9.2, because: So.}
";

/// Pages behind an HTTPS gateway, swept over rate, replicas and nodes; each test breaks a part of it.
const SWEPT: &str = "\
study: swept
app:
  entry: ingress
  nodes: 2
  gateways:
    ingress: {port: 443, to: page, tls: true, node: 1}
  services:
    page: {port: 80, program: {nginx: {bytes: 615}}}
variants:
  bare: {}
  sidecar: {sidecar: {proxy: envoy}}
  ambient: {ambient: {mtls: strict, proxy: any, waypoint: true}}
baseline: bare
loads:
  get:
    open: {rate: 20/s}
    matrix: {rate: [20/s, 50/s], replicas: {page: [1, 10]}, nodes: [1, 2]}
  wake-up: {open: {rate: 200/s}, slice: 1s}
quick: {matrices: {get: {replicas: {page: [1, 4]}}}}
reference:
  source: a paper
  figures:
    ambient: {get-20x10-on-1: {cpu_total_millicores: 25, memory_total_mib: 258, cpu_millicores: {page-10: 1}}}
  recomputed:
    - {variant: ambient, against: sidecar, load: get-50x1-on-2, derived: cpu_ratio, printed: 0.5, because: So.}
";

/// Four services with a database outside of the mesh, and two ways there; each test breaks a part of it.
const AIRLINE: &str = "\
study: airline
app:
  entry: web
  services:
    web: {port: 8080, program: {airline: {part: web, work: {cpu: 100us}}}, calls: [flights, bookings, customers]}
    flights: {port: 8081, program: {airline: {part: flights, database: airline-db, connections: 64}}}
    bookings: {port: 8082, program: {airline: {part: bookings, database: airline-db}}, calls: [customers, flights]}
    customers:
      port: 8083
      program:
        airline:
          part: customers
          database: airline-db
  databases:
    airline-db:
      port: 27017
      program:
        airline:
          server: mongodb
          host: db.airline.example
          flights: 200
          seats: 1000
          customers: 100
variants:
  none: {}
  bypass: {sidecar: {proxy: envoy}, egress: bypass}
  gateway: {sidecar: {proxy: envoy}, egress: {gateway: {sni_proxy: true, hosts: [\"*.airline.example\"]}}}
baseline: bypass
loads:
  clients:
    closed: {connections: 20}
    slice: 400ms
    mix:
      find: {weight: 40, path: \"/flights?from=A1&to=A2\"}
      book: {weight: 20, method: POST, path: /bookings, body: '{\"key\": \"{{counter}}-{{random}}\", \"customer\": 7, \"flight\": {{random.0.199}}}'}
      look: {weight: 20, path: \"/customers/{{random.0.99}}\"}
    matrix: {connections: [1, 5, 20]}
  steady: {open: {rate: 100/s}, request: {path: \"/bookings?customer=7\"}}
quick: {matrices: {clients: {connections: [1, 20]}}}
reference:
  source: a paper
  figures: {}
  recomputed:
    - {variant: gateway, against: none, load: clients-20, derived: throughput_change, printed: -24, because: So.}
";

/// The request of [`AIRLINE`] that makes bookings.
const BOOKS: &str = "method: POST, path: /bookings, body: '{\"key\": \"{{counter}}-{{random}}\", \"customer\": 7, \"flight\": {{random.0.199}}}'";

fn no_environment(_: &str) -> Option<String> {
    None
}

fn sound() -> Study {
    read("sound.yaml", SOUND, &no_environment).unwrap().0
}

/// The sound study with one part replaced.
fn with(part: &str, replacement: &str) -> String {
    replaced(SOUND, part, replacement)
}

/// The study with one part replaced.
fn replaced(study: &str, part: &str, replacement: &str) -> String {
    assert_eq!(study.matches(part).count(), 1, "`{part}` must stand in the study once");
    study.replace(part, replacement)
}

/// What a user sees who wrote this.
fn errors_of(text: &str) -> String {
    let errors = read("study.yaml", text, &no_environment).unwrap_err();
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor());
    let mut seen = String::new();
    handler.with_width(80).render_report(&mut seen, &errors).unwrap();
    seen
}

/// One test a line: what it shows, the part of the study, what stands there instead.
macro_rules! shown_as {
    (in $study:expr; $($name:ident: $part:expr => $replacement:expr;)+) => {$(
        #[test]
        fn $name() {
            assert_snapshot!(stringify!($name), errors_of(&replaced($study, $part, $replacement)));
        }
    )+};
}

shown_as! {
    in SOUND;
    a_misspelt_key_is_answered_with_the_nearest_one: "port: 9000" => "prt: 9000";
    an_unknown_key_is_answered_with_the_allowed_ones: "port: 9000," => "port: 9000, colour: red,";
    a_key_of_another_proxy_is_unknown: "proxy: envoy, mtls: strict" => "proxy: envoy, binary: x";
    a_missing_key_is_shown_with_an_example: "port: 9000, " => "";
    a_missing_key_of_a_block_is_shown_at_the_key_of_the_block: "      port: 9999\n" => "";
    a_missing_key_of_the_whole_file_is_shown_at_its_start: "study: sound\n" => "";
    a_missing_proxy_is_shown_with_an_example: "proxy: envoy, " => "";
    a_number_where_a_mapping_is_wanted_is_shown: "{bytes: 5}" => "5";
    a_text_where_a_number_is_wanted_is_shown: "rounds: 8" => "rounds: five";
    a_fraction_where_a_whole_number_is_wanted_is_shown: "rounds: 8" => "rounds: 5.5";
    a_number_without_unit_is_no_duration: "slice: 400ms" => "slice: 400";
    a_key_that_is_left_empty_is_shown: "settle: {slice: 250ms, max: 3s}" => "settle:";
    a_number_that_should_be_quoted_is_shown_quoted: "source: a paper" => "source: 2019";
    mtls_of_mesher_is_refused_with_the_reason: "proxy: mesher, " => "proxy: mesher, mtls: strict, ";
    a_misspelt_word_is_answered_with_the_nearest_one: "mtls: strict" => "mtls: strikt";
    an_unknown_proxy_is_answered_with_the_known_ones: "proxy: envoy" => "proxy: nginx";
    an_unreadable_duration_is_shown_with_examples: "slice: 400ms" => "slice: half a minute";
    an_unreadable_rate_is_shown_with_examples: "50% of capacity" => "60%";
    an_unreadable_name_is_shown_with_examples: "study: sound" => "study: ../../etc";
    a_name_with_a_capital_letter_is_shown_with_examples: "  same-rate:" => "  Same Rate:";
    a_port_outside_its_range_is_shown: "port: 9000" => "port: 70000";
    a_rate_of_zero_is_shown: "50% of capacity" => "0";
    no_rounds_are_too_few: "rounds: 8" => "rounds: 0";
    no_cycles_are_too_few: "rounds: 8" => "cycles: 0";
    a_run_takes_time: "rounds: 8" => "for: 0s";
    a_width_of_nothing_is_never_reached: "rounds: 8" => "width: 0%";
    a_headline_metric_is_one_of_the_known: "rounds: 8" => "headline: [latency_p5]";
    a_headline_metric_stands_there_once: "rounds: 8" => "headline: [latency_p50, throughput, latency_p50]";
    a_headline_has_a_metric: "rounds: 8" => "headline: []";
    a_bound_above_the_whole_is_shown: "rounds: 8" => "bound: 150%";
    a_load_must_be_open_or_closed: "open: {rate: 50% of capacity}, " => "";
    a_load_cannot_be_open_and_closed: "    requests: 1000" => "    requests: 1000\n    open: {rate: 500}";
    a_slice_has_one_length: "requests: 1000" => "requests: 1000\n    slice: 1s";
    a_slice_of_an_open_load_has_no_count: "slice: 400ms" => "requests: 1000";
    a_slice_of_a_load_must_last: "slice: 400ms" => "slice: 0s";
    a_curve_has_two_rates: "{open: {rate: 50% of capacity}, slice: 400ms}" => "{curve: {steps: 1}}";
    a_curve_is_not_swept: "{open: {rate: 50% of capacity}, slice: 400ms}" => "{curve: {}, matrix: {replicas: {server: [1, 2]}}}";
    a_variable_that_is_not_set_is_an_error_outside_of_binaries: "source: a paper" => "source: \"${PAPER}\"";
    a_call_to_an_unknown_service_is_answered_with_the_nearest_one: "[server]" => "[sever]";
    an_unknown_entry_is_answered_with_the_known_services: "entry: client" => "entry: gateway";
    an_unknown_baseline_is_answered_with_the_known_variants: "baseline: bare" => "baseline: original";
    a_reference_to_an_unknown_variant_is_shown: "    bare: {flat-out" => "    istio: {flat-out";
    a_reference_to_an_unknown_load_is_shown: "{flat-out: {thr" => "{flat: {thr";
    a_service_that_calls_itself_is_shown: "[server]" => "[client]";
    a_service_that_calls_itself_in_a_circle_is_shown_as_a_circle:
        "      port: 9999" => "      port: 9999\n      calls: [client]";
    two_services_cannot_share_a_port: "port: 9999" => "port: 9000";
    a_service_is_one_program: "{built_in: {reply: {bytes: 5}" => "{command: [./my-api], built_in: {reply: {bytes: 5}";
    a_program_has_its_own_keys_and_no_others: "{built_in: {reply: {bytes: 5}" => "{nginx: {reply: {bytes: 5}";
    an_unknown_program_is_answered_with_the_nearest_one: "{built_in: {reply" => "{bult_in: {reply";
    a_service_that_names_no_program_is_answered_with_all: "{built_in: {reply: {bytes: 5}, stall: {every: 1s, for: 100ms}}}" => "{}";
    a_program_without_its_keys_is_shown_with_an_example: "{built_in: {reply: {bytes: 5}, stall: {every: 1s, for: 100ms}}}" => "command";
    an_unknown_program_without_keys_is_answered_with_the_nearest_one: "{built_in: {reply: {bytes: 5}, stall: {every: 1s, for: 100ms}}}" => "ngnix";
    a_program_is_no_number: "{built_in: {reply: {bytes: 5}, stall: {every: 1s, for: 100ms}}}" => "5";
    a_command_has_at_least_one_word: "calls: [server]" => "calls: [server], program: {command: []}";
    a_command_for_a_shell_is_told_how_to_start_one: "calls: [server]" => "calls: [server], program: {command: \"./my-api | tee log\"}";
    a_shells_variable_in_a_command_is_told_what_there_is: "calls: [server]" => "calls: [server], program: {command: ./my-api --port $PORT}";
    a_placeholder_for_what_is_not_called_is_answered_with_what_is: "calls: [server]" => "calls: [server], program: {command: \"./my-api {url.sever}\"}";
    variables_for_a_program_of_tolls_own_are_refused: "calls: [server]" => "calls: [server], env: {LOG_LEVEL: warn}";
    a_service_is_ready_by_one_sign: "calls: [server]" => "calls: [server], program: {command: ./a}, ready: {path: /, tcp: 90}";
    a_version_of_a_program_of_tolls_own_is_refused: "sidecar: {proxy: envoy, mtls: strict}" => "services: {client: {command: ./b}}";
    a_stall_must_be_shorter_than_its_period: "for: 100ms" => "for: 1s";
    a_study_needs_a_service:
        "\n    client: {port: 9000, calls: [server]}\n    server:\n      port: 9999\n      program: {built_in: {reply: {bytes: 5}, stall: {every: 1s, for: 100ms}}}"
        => " {}";
    a_key_that_stands_twice_is_shown_at_both_places: "rounds: 8" => "rounds: 8\nbaseline: envoy";
    text_that_is_not_yaml_is_shown_where_it_breaks: "[server]}" => "[server}";
    a_tab_as_indentation_is_shown: "    server:" => "\tserver:";
    a_key_that_is_a_list_is_shown: "rounds: 8" => "[a, b]: 5";
    a_second_document_is_shown: "rounds: 8" => "---\nrounds: 8";
}

shown_as! {
    in CHAIN;
    a_gateway_to_an_unknown_service_is_answered_with_the_nearest_one: "to: front" => "to: fornt";
    a_database_cannot_be_called: "calls: [back]" => "calls: [back, orders]";
    an_entry_that_is_neither_gateway_nor_service_is_shown: "entry: ingress" => "entry: orders";
    two_parts_of_the_application_cannot_share_a_name:
        "    ingress: {" => "    back: {port: 8088, to: front}\n    ingress: {";
    no_part_of_the_application_has_the_name_of_another_ones_pod:
        "    ingress: {" => "    front-2: {port: 8088, to: front}\n    ingress: {";
    a_gateway_and_a_database_cannot_share_a_port: "port: 5432" => "port: 8080";
    a_query_of_an_unknown_database_is_answered_with_the_nearest_one: "database: orders" => "database: order";
    a_database_that_nobody_queries_is_shown: "    orders:" => "    spare: {port: 5433, program: {postgres: {seed: SELECT 1}}}\n    orders:";
    writes_need_a_count_of_what_was_written:
        "          written: SELECT count(line), count(DISTINCT line) FROM log\n" => "";
    a_post_needs_a_service_that_writes: "            write: INSERT INTO log VALUES ($1)\n" => "";
    what_calls_nothing_has_nothing_to_hand_on: ", calls: [back]" => "";
    a_truth_value_is_wanted_of_a_switch: "relay: true" => "relay: yes please";
    no_replicas_are_too_few: "replicas: 2" => "replicas: 0";
    too_many_replicas_are_shown: "replicas: 2" => "replicas: 1001";
    a_misspelt_runtime_is_answered_with_the_nearest_one: "runtime: spring" => "runtime: sprig";
    a_database_needs_a_seed: "          seed: CREATE TABLE log (line text)\n" => "";
    an_empty_query_is_shown: "read: SELECT 1 AS one" => "read: \"\"";
    an_unknown_method_is_answered_with_the_known_ones: "method: POST" => "method: PAST";
    a_get_has_no_body: "method: POST, " => "";
    a_type_needs_a_body: ", body: 'n {{counter}}'" => "";
    a_path_without_its_slash_is_shown_with_examples: "{path: /log}" => "{path: log}";
    a_misspelt_placeholder_is_answered_with_the_nearest_one: "{{counter}}" => "{{conter}}";
    a_placeholder_of_an_empty_range_is_shown: "{{counter}}" => "{{random.9.1}}";
    a_slice_must_last: "slice: 1s" => "slice: 0s";
    a_discarded_load_needs_room_for_six_slices: "max: 20s" => "max: 5s";
    a_discarded_load_of_a_runtime_needs_room_too: "max: 30s" => "slice: 10s";
    a_change_of_an_unknown_load_is_shown: "paper: {loads: {reads" => "paper: {loads: {read";
    a_changed_slice_must_last: "{reads: {requests: 1000000}}" => "{reads: {slice: 0s}}";
    a_changed_slice_has_one_length: "{requests: 1000000}" => "{requests: 1000000, slice: 1m}";
    a_change_of_a_load_says_what: "{requests: 1000000}" => "{}";
    a_profile_counts_requests_of_closed_loads_only: "{reads: {requests: 1000000}}" => "{writes: {requests: 1000000}}";
    figures_of_an_unknown_pod_are_answered_with_the_known_ones: "back: 10" => "bck: 10";
    the_pods_of_a_service_with_replicas_are_numbered: "front-1: 11" => "front: 11";
    a_published_figure_is_not_negative: "p95: 8.2" => "p95: -8.2";
    a_derivation_of_an_unknown_variant_is_shown: "variant: envoy" => "variant: istio";
    a_derivation_for_an_unknown_load_is_shown: "load: reads" => "load: read";
    an_unknown_derivation_is_answered_with_the_nearest_one: "derived: cpu_change" => "derived: cpu_chnge";
    a_derivation_says_why: ", because: It was wrong." => "";
}

shown_as! {
    in TRACED;
    a_slice_of_virtual_users_is_their_stages: "    vus: {users" => "    slice: 30s\n    vus: {users";
    a_slice_of_virtual_users_has_no_count: "    vus: {users" => "    requests: 30\n    vus: {users";
    the_length_of_a_slice_may_be_misspelt: "slice: 400ms" => "slise: 400ms";
    a_wrong_length_of_a_slice_is_shown_where_it_stands: "slice: 400ms" => "slice: 400";
    a_load_cannot_be_open_and_of_users: "    vus: {users" => "    open: {rate: 5/s}\n    vus: {users";
    stages_must_last: "ramp: 1s, hold: 4s, ramp_down: 500ms" => "ramp: 0s, hold: 0s, ramp_down: 0s";
    no_users_are_too_few: "users: 320" => "users: 0";
    what_users_were_chosen_for_is_no_share: "capacity: 1526/s" => "capacity: 50% of capacity";
    a_profile_gives_virtual_users_no_slice: "paper: {" => "paper: {loads: {users: {slice: 5s}}, ";
    a_profile_gives_stages_to_virtual_users_only:
        "paper: {" => "paper: {loads: {same-rate: {vus: {ramp: 1s, hold: 1s, ramp_down: 1s}}}, ";
    stages_of_a_profile_must_last: "{ramp: 50s, hold: 10m, ramp_down: 50s}" => "{ramp: 0s, hold: 0s, ramp_down: 0s}";
    spans_of_an_unknown_service_are_answered_with_the_nearest_one: "vets: 9}" => "vet: 9}";
    spans_of_an_agent_are_of_services_that_there_are:
        "jar: \"${EASEAGENT}\"" => "jar: \"${EASEAGENT}\", spans: {gatewai: 2}";
    the_petclinic_has_its_own_keys_and_no_others: "{part: vets}" => "{part: vets, runtime: spring, work: {cpu: 1ms}}";
    the_petclinic_has_parts: "{part: vets}" => "{heap_mib: 128}";
    the_gateway_of_the_petclinic_calls_one_service: "      calls: [vets]\n" => "";
    the_vets_of_the_petclinic_call_nothing: "port: 8081" => "port: 8081\n      calls: [other]";
    an_unknown_part_of_the_petclinic_is_answered_with_the_nearest_one: "{part: vets}" => "{part: vet}";
    a_heap_outside_its_range_is_shown: "heap_mib: 256" => "heap_mib: 32";
    series_need_metrics: "      metrics: http://localhost:9080/metrics\n" => "";
    metrics_are_in_the_pod: "http://localhost:9080/metrics" => "http://gateway:9080/metrics";
    metrics_cannot_share_a_port: "http://localhost:9080" => "http://localhost:8081";
    metrics_cannot_have_the_port_of_the_collector: "http://localhost:9080" => "http://localhost:4318";
    no_service_is_called_as_the_collector_is: "    vets:\n" => "    collector: {port: 8084}\n    vets:\n";
    a_variant_has_sidecars_or_an_agent: "  agent: {java_agent" => "  agent: {sidecar: {proxy: envoy}, java_agent";
    an_unknown_agent_is_answered_with_the_nearest_one: "kind: opentelemetry" => "kind: opentelemetri";
    an_agent_has_a_kind: "kind: opentelemetry, " => "";
    a_setting_is_no_list: "otel.logs.exporter: none" => "otel.logs.exporter: [none]";
    a_derivation_of_a_pod_names_it: ", pod: vets" => "";
    a_derivation_of_all_pods_names_none: "derived: throughput_change" => "derived: throughput_change, pod: vets";
    a_derivation_of_an_unknown_pod_is_shown: "pod: vets" => "pod: vet";
}

shown_as! {
    in SWEPT;
    a_variant_has_sidecars_or_node_proxies: "  ambient: {ambient: {mtls" => "  ambient: {sidecar: {proxy: envoy}, ambient: {mtls";
    a_node_proxy_is_any_envoy_or_ztunnel: "proxy: any" => "proxy: ztunel";
    a_waypoint_is_there_or_not: "waypoint: true" => "waypoint: shared";
    an_ambient_data_plane_has_names_of_its_own: "    ingress: {port" => "    waypoint: {port: 81, to: page}\n    ingress: {port";
    nginx_calls_nothing_and_has_no_metrics:
        "port: 80, program: {nginx: {bytes: 615}}" => "port: 80, program: nginx, calls: [page], metrics: http://localhost:9000/metrics";
    nginx_has_no_answer_to_a_post: "slice: 1s" => "slice: 1s, request: {method: POST}";
    a_page_is_not_endless: "bytes: 615" => "bytes: 2000000000";
    no_nodes_are_too_few: "nodes: 2\n" => "nodes: 0\n";
    a_matrix_sweeps_something: "{rate: [20/s, 50/s], replicas: {page: [1, 10]}, nodes: [1, 2]}" => "{}";
    an_axis_has_a_value: "rate: [20/s, 50/s]" => "rate: []";
    an_axis_of_replicas_has_a_service: "replicas: {page: [1, 10]}" => "replicas: {}";
    an_axis_of_replicas_has_a_value: "replicas: {page: [1, 10]}" => "replicas: {page: []}";
    an_unknown_axis_is_answered_with_the_known_ones: "nodes: [1, 2]" => "node: [1, 2]";
    a_swept_rate_is_absolute: "[20/s, 50/s]" => "[20/s, 50% of capacity]";
    only_an_open_load_has_a_rate_to_sweep: "    open: {rate: 20/s}\n" => "    closed: {connections: 4}\n";
    the_capacity_is_another_at_each_size: "    open: {rate: 20/s}\n    matrix: {rate: [20/s, 50/s], " => "    open: {rate: 50% of capacity}\n    matrix: {";
    one_service_is_swept: "replicas: {page: [1, 10]}" => "replicas: {page: [1, 10], other: [1]}";
    a_swept_service_that_is_unknown_is_answered_with_the_nearest_one: "replicas: {page: [1, 10]}" => "replicas: {pgae: [1, 10]}";
    swept_replicas_and_nodes_lie_in_their_range: "replicas: {page: [1, 10]}, nodes: [1, 2]" => "replicas: {page: [0, 1001]}, nodes: [101]";
    a_value_stands_on_an_axis_once: "rate: [20/s, 50/s], replicas: {page: [1, 10]}" => "rate: [20/s, 20], replicas: {page: [1, 10, 1]}";
    swept_replicas_of_the_entry_need_a_gateway: "entry: ingress" => "entry: page";
    a_pod_of_a_sweep_shares_its_name_with_nothing: "    page: {port" => "    page-10: {port: 81}\n    page: {port";
    a_cell_shares_its_name_with_no_load: "  wake-up:" => "  get-20x10-on-2:";
    a_sweep_of_a_profile_is_of_a_known_load: "quick: {matrices: {get" => "quick: {matrices: {got";
    a_sweep_of_a_profile_fits_too: "page: [1, 4]" => "page: [1, 1]";
    figures_of_a_swept_load_are_of_its_cells: "{get-20x10-on-1:" => "{get:";
    a_derivation_of_a_cell_that_is_not_there_is_shown: "load: get-50x1-on-2" => "load: get-50x2-on-2";
    a_derivation_is_held_against_a_known_variant: "against: sidecar" => "against: sidecars";
    a_derivation_is_not_held_against_itself: "against: sidecar" => "against: ambient";
}

shown_as! {
    in AIRLINE;
    an_unknown_part_of_the_airline_is_answered_with_the_nearest_one: "part: flights" => "part: flight";
    a_part_of_the_airline_has_its_own_keys_and_no_others:
        "          part: customers" => "          part: customers\n          stall: {every: 1s, for: 1ms}\n          reply: {bytes: 5}";
    the_airline_has_parts: "          part: customers\n" => "";
    the_web_of_the_airline_calls_all_other_parts: "calls: [flights, bookings, customers]" => "calls: [flights, bookings]";
    the_web_of_the_airline_calls_each_part_once: "calls: [flights, bookings, customers]" => "calls: [flights, flights, bookings, customers]";
    the_customers_of_the_airline_call_nothing: "      port: 8083" => "      port: 8083\n      calls: [flights]";
    the_web_of_the_airline_has_no_database: "part: web, work" => "part: web, database: airline-db, work";
    the_web_of_the_airline_has_no_pool: "part: web, work" => "part: web, connections: 64, work";
    the_parts_of_the_airline_share_one_database:
        "          database: airline-db\n  databases:"
        => "          database: other-db\n  databases:\n    other-db: {port: 1, program: {airline: {host: other.airline.example}}}";
    a_booking_has_a_body: BOOKS => "method: POST, path: /bookings";
    a_booking_is_json: "{{random.0.199}}}'" => "{{random.0.199}}'";
    a_booking_has_a_key: "\"key\": \"{{counter}}-{{random}}\", " => "";
    a_booking_is_of_a_customer: "\"customer\": 7" => "\"customer\": \"7\"";
    a_booking_is_of_a_flight: "\"flight\": {{random.0.199}}" => "\"flight\": {{random.-9.199}}";
    bookings_differ_in_their_keys: "{{counter}}-{{random}}" => "fixed";
    keys_from_a_small_range_come_twice: "{{counter}}-{{random}}" => "{{random.1.100}}";
    a_part_of_the_airline_needs_a_database: "          database: airline-db\n" => "";
    an_unknown_database_of_the_airline_is_answered_with_the_nearest_one: "          database: airline-db" => "          database: airlin-db";
    the_airline_is_in_no_database_of_others:
        "        airline:\n          server: mongodb\n          host: db.airline.example\n          flights: 200\n          seats: 1000\n          customers: 100"
        => "        postgres: {seed: SELECT 1}";
    nobody_else_queries_the_airlines_database:
        "  databases:" => "    extra: {port: 9000, program: {built_in: {postgres: {database: airline-db, read: SELECT 1}}}}\n  databases:";
    an_external_database_is_not_called: "calls: [customers, flights]" => "calls: [customers, flights, airline-db]";
    the_airlines_database_has_no_seed: "          flights: 200" => "          seed: SELECT 1";
    a_database_is_filled_in_one_way: "      program:\n        airline:\n          server" => "      program:\n        postgres: {seed: SELECT 1}\n        airline:\n          server";
    the_airlines_database_is_outside_of_the_mesh: "          host: db.airline.example\n" => "";
    bookings_are_counted_without_sql: "          server: mongodb" => "          written: SELECT 1, 1";
    a_database_is_some_program:
        "  databases:" => "  databases:\n    log: {port: 5432}";
    mongodb_is_for_the_airline:
        "  databases:" => "  databases:\n    log: {port: 5432, program: {postgres: {server: mongodb, seed: SELECT 1}}}";
    an_external_host_has_a_name: "host: db.airline.example" => "host: 10.0.0.1:27017";
    external_hosts_have_names_of_their_own:
        "  databases:" => "  databases:\n    other: {port: 1, program: {airline: {host: db.airline.example}}}";
    an_unknown_server_is_answered_with_the_nearest_one: "server: mongodb" => "server: mongo";
    an_inventory_is_not_endless: "seats: 1000" => "seats: 2000000000";
    an_unknown_way_out_is_answered_with_the_nearest_one: "egress: bypass" => "egress: bypas";
    a_gateway_on_the_way_out_is_a_mapping: "egress: bypass" => "egress: gateway";
    a_way_out_is_a_word_or_a_mapping: "egress: bypass" => "egress: [bypass]";
    a_misspelt_key_of_a_way_out_is_answered_with_the_nearest_one: "sni_proxy: true" => "sni_prox: true";
    a_way_out_needs_sidecars: "  none: {}" => "  none: {egress: sidecar}";
    the_names_that_a_gateway_lets_out_are_names: "*.airline.example" => "*airline.example";
    no_part_is_called_as_the_egress_gateway_is: "  databases:" => "    egress: {port: 9000}\n  databases:";
    a_mix_takes_the_place_of_a_request: "    slice: 400ms\n    mix:" => "    slice: 400ms\n    request: {path: /flights}\n    mix:";
    a_request_of_a_mix_has_a_weight: "weight: 40, " => "";
    a_weight_of_nothing_is_shown: "weight: 40" => "weight: 0";
    a_request_of_a_mix_is_checked_as_any: "method: POST, path: /bookings" => "path: /bookings";
    a_mix_is_of_something:
        "    mix:\n      find: {weight: 40, path: \"/flights?from=A1&to=A2\"}\n      book: {weight: 20, method: POST, path: /bookings, body: '{\"key\": \"{{counter}}-{{random}}\", \"customer\": 7, \"flight\": {{random.0.199}}}'}\n      look: {weight: 20, path: \"/customers/{{random.0.99}}\"}\n"
        => "    mix: {}\n";
    what_the_airline_has_no_answer_to_is_answered_with_the_nearest_one: "/flights?from" => "/flight?from";
    connections_are_swept_in_a_closed_loop: "    closed: {connections: 20}" => "    open: {rate: 20/s}";
    swept_connections_are_in_range_and_there_once: "connections: [1, 5, 20]" => "connections: [0, 5, 5, 60001]";
    a_staircase_has_a_step: "connections: [1, 5, 20]" => "connections: []";
    figures_of_a_staircase_are_of_its_steps: "load: clients-20" => "load: clients-21";
    what_only_a_step_has_is_not_of_the_staircase:
        "load: clients-20, derived: throughput_change" => "load: clients, derived: memory_change";
}

#[test]
fn a_way_out_leads_to_an_external_database() {
    let said = errors_of(&with(
        "proxy: envoy, mtls: strict}",
        "proxy: envoy, mtls: strict}, egress: bypass",
    ));
    assert!(said.contains("no external database that an `egress` could lead to"), "{said}");
}

#[test]
fn a_study_of_the_airline_is_read_without_warning() {
    let (study, warnings) = read("airline.yaml", AIRLINE, &no_environment).unwrap();
    assert_eq!(warnings, []);
    let clients = &study.loads["clients"];
    let weights: Vec<u32> = clients.mix.values().map(|kind| kind.weight).collect();
    assert_eq!(weights, [40, 20, 20]);
    let names = clients.names(&"clients".parse().unwrap());
    assert_eq!(names, ["clients-1", "clients-5", "clients-20"]);
    let quick = study.clone().with_profile(Profile::Quick);
    assert_eq!(
        quick.loads["clients"].names(&"clients".parse().unwrap()),
        ["clients-1", "clients-20"]
    );
    assert_eq!(study.app.external().collect::<Vec<_>>()[0].1, "db.airline.example");
    let stored = serde_json::to_string(&study).unwrap();
    assert_eq!(serde_json::from_str::<Study>(&stored).unwrap(), study);
}

#[test]
fn an_sni_proxy_needs_no_mtls_and_a_gateway_nothing() {
    let plain = replaced(AIRLINE, "{sni_proxy: true, hosts: [\"*.airline.example\"]}", "{}");
    for text in [AIRLINE, &plain] {
        let (study, _) = read("airline.yaml", text, &no_environment).unwrap();
        let Some(Egress::Gateway(gateway)) = &study.variants["gateway"].egress else {
            panic!("none")
        };
        assert!(!gateway.mtls);
    }
}

#[test]
fn a_gateway_that_does_not_let_the_database_out_is_warned_of_with_its_line() {
    for (hosts, warned) in
        [("*.airline.example", false), ("db.airline.example", false), ("*.other.example", true)]
    {
        let text = replaced(AIRLINE, "*.airline.example", hosts);
        let (_, warnings) = read("airline.yaml", &text, &no_environment).unwrap();
        let said: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        let wanted = "line 27: the egress gateway of gateway does not let db.airline.example out, so nothing of it will count";
        assert_eq!(said, if warned { vec![wanted] } else { vec![] }, "{hosts}");
    }
}

#[test]
fn flights_that_a_run_may_sell_out_are_warned_of_with_their_line() {
    let told = |text: &str| -> Vec<String> {
        let (_, warnings) = read("airline.yaml", text, &no_environment).unwrap();
        warnings.iter().map(ToString::to_string).collect()
    };
    let few = replaced(AIRLINE, "seats: 1000", "seats: 10");
    let wanted = "line 22: airline-db has 2000 seats in all, which a run may sell out; write `seats: 500` or more";
    assert_eq!(told(&few), [wanted]);
    assert_eq!(told(&replaced(AIRLINE, "seats: 1000", "seats: 500")), [""; 0]);
    assert_eq!(told(&replaced(&few, BOOKS, "path: /flights")), [""; 0]);
}

#[test]
fn a_profile_changes_the_work_of_the_airline_too() {
    let text = replaced(AIRLINE, "quick: {", "quick: {work: {cpu: 0us}, ");
    let (study, _) = read("airline.yaml", &text, &no_environment).unwrap();
    let quick = study.with_profile(Profile::Quick);
    let airline = |service: &Service| service.program.airline().unwrap().work();
    assert!(quick.app.services.values().all(|service| airline(service).cpu.is_zero()));
}

#[test]
fn a_swept_study_is_read_without_warning() {
    let (study, warnings) = read("swept.yaml", SWEPT, &no_environment).unwrap();
    assert_eq!(warnings, []);
    let ambient = study.variants["ambient"].ambient.unwrap();
    assert_eq!(
        (ambient.mtls, ambient.proxy, ambient.waypoint),
        (Mtls::Strict, NodeProxy::Any, true)
    );
    assert_eq!((study.app.nodes, study.app.gateways["ingress"].tls), (2, true));
    let names = |study: &Study, load: &str| study.loads[load].names(&load.parse().unwrap());
    let cells = ["20x1-on-1", "50x1-on-1", "20x10-on-1", "50x10-on-1"];
    let others = ["20x1-on-2", "50x1-on-2", "20x10-on-2", "50x10-on-2"];
    let cells = cells.into_iter().chain(others).map(|cell| format!("get-{cell}"));
    assert_eq!(names(&study, "get"), cells.collect::<Vec<_>>());
    assert_eq!(names(&study, "wake-up"), ["wake-up"]);
    assert_eq!(names(&study.with_profile(Profile::Quick), "get"), ["get-1", "get-4"]);
}

#[test]
fn the_names_of_the_mesh_are_free_where_no_variant_is_ambient() {
    let study =
        replaced(SWEPT, "  ambient: {ambient: {mtls: strict, proxy: any, waypoint: true}}\n", "");
    let study = &study[..study.find("reference:").unwrap()];
    let study = study.replace(
        "  services:\n",
        "  services:\n    waypoint: {port: 82}\n    node: {port: 81, replicas: 3}\n",
    );
    read("study.yaml", &study, &no_environment).unwrap();
}

#[test]
fn a_fraction_of_a_rate_makes_a_name_without_a_dot() {
    let study = replaced(
        SWEPT,
        "rate: [20/s, 50/s], replicas: {page: [1, 10]}, nodes: [1, 2]",
        "rate: [0.5/s]",
    );
    let study = &study[..study.find("reference:").unwrap()];
    let (study, _) = read("study.yaml", study, &no_environment).unwrap();
    assert_eq!(study.loads["get"].names(&"get".parse().unwrap()), ["get-0-5"]);
}

fn traced() -> Study {
    read("traced.yaml", TRACED, &no_environment).unwrap().0
}

#[test]
fn a_study_of_agents_is_read_without_warning() {
    let (study, warnings) = read("traced.yaml", TRACED, &no_environment).unwrap();
    assert_eq!(warnings, []);
    let Some(JavaAgent::OpenTelemetry { settings, .. }) = &study.variants["agent"].java_agent
    else {
        panic!("{study:?}")
    };
    let told: Vec<String> =
        settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(told, ["otel.logs.exporter=none", "otel.jmx.enabled=false"]);
    let metrics = study.app.services["gateway"].metrics.as_ref().unwrap();
    assert_eq!((metrics.port, metrics.path.as_str()), (9080, "/metrics"));
    assert_eq!(study.loads["users"].length, None);
}

#[test]
fn an_agent_that_is_told_to_trace_nothing_is_warned_of_with_its_line() {
    for setting in ["otel.sdk.disabled: true", "otel.traces.exporter: none"] {
        let text = replaced(TRACED, "otel.jmx.enabled: false", setting);
        let (_, warnings) = read("traced.yaml", &text, &no_environment).unwrap();
        let setting = setting.to_owned();
        assert_eq!(warnings, [Warning::Untraced { line: 16, variant: "agent".into(), setting }]);
    }
    let sdk = replaced(TRACED, "otel.jmx.enabled: false", "otel.sdk.disabled: false");
    assert_eq!(read("traced.yaml", &sdk, &no_environment).unwrap().1, []);
}

#[test]
fn a_jar_whose_variable_is_not_set_is_kept_with_its_reason() {
    let study = traced();
    let Some(JavaAgent::EaseAgent { jar, .. }) = &study.variants["easeagent"].java_agent else {
        panic!("{study:?}")
    };
    assert_eq!(jar.path(), Err("EASEAGENT"));
}

#[test]
fn a_profile_leaves_the_stages_of_users_to_its_own_key() {
    let stages = |study: &Study| match study.loads["users"].model {
        LoadModel::Vus(vus) => [vus.ramp, vus.hold, vus.ramp_down].map(|span| span.to_string()),
        _ => panic!("{study:?}"),
    };
    let paper = traced().with_profile(Profile::Paper);
    assert_eq!(stages(&paper), ["50s", "10m", "50s"]);
    assert_eq!(paper.loads["users"].length, None);
    assert_eq!(paper.loads["same-rate"].length, Some(Length::Slice(TimeSpan::from_secs(60))));
    let own = replaced(
        TRACED,
        "paper: {",
        "paper: {loads: {users: {vus: {ramp: 1s, hold: 2s, ramp_down: 3s}}}, ",
    );
    let own = read("traced.yaml", &own, &no_environment).unwrap().0.with_profile(Profile::Paper);
    assert_eq!(stages(&own), ["1s", "2s", "3s"]);
    let slice_only = replaced(TRACED, ", vus: {ramp: 50s, hold: 10m, ramp_down: 50s}", "");
    let kept = read("traced.yaml", &slice_only, &no_environment).unwrap().0;
    assert_eq!(stages(&kept.with_profile(Profile::Paper)), ["1s", "4s", "500ms"]);
}

#[test]
fn the_port_of_the_collector_is_free_where_no_variant_has_an_agent() {
    read("study.yaml", &with("port: 9000", "port: 4318"), &no_environment).unwrap();
}

#[test]
fn what_follows_from_a_misspelt_key_of_an_agents_study_is_not_reported_again() {
    for (key, slip) in [
        ("{petclinic: {part: gateway", "{petclinc: {part: gateway"),
        ("part: gateway", "prt: gateway"),
        ("      metrics:", "      metrcs:"),
        ("    vus: {users", "    vu: {users"),
        ("pod: vets", "pd: vets"),
    ] {
        let seen = errors_of(&replaced(TRACED, key, slip));
        assert!(seen.contains("1 error in the study file"), "{seen}");
    }
}

#[test]
fn an_endpoint_of_metrics_is_a_port_of_the_pod_and_a_path() {
    let shown = |text: &str| text.parse::<super::quantity::Metrics>().map(|m| m.to_string());
    assert_eq!(shown("http://localhost:9404/metrics").unwrap(), "http://localhost:9404/metrics");
    for wrong in [
        "localhost:9404/metrics",
        "http://localhost/metrics",
        "http://localhost:0/",
        "http://localhost:9404",
        "https://localhost:9404/m",
    ] {
        assert!(shown(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_chain_with_a_database_is_read_without_warning() {
    let (chain, warnings) = read("chain.yaml", CHAIN, &no_environment).unwrap();
    assert_eq!(warnings, []);
    assert_eq!((chain.settle.max, chain.settle.connections), (TimeSpan::from_secs(20), 32));
    let writes = &chain.loads["writes"].request;
    assert_eq!((writes.method, writes.path.as_str()), (Method::Post, "/log"));
    assert_eq!(chain.loads["reads"].request.method, Method::Get);
    assert_eq!(chain.app.services["front"].replicas, 2);
    let queries = chain.app.services["back"].program.queries().unwrap();
    assert_eq!((queries.database.as_str(), queries.connections), ("orders", 4));
}

#[test]
fn a_post_to_services_without_a_database_is_sound() {
    let text = with("slice: 400ms", "slice: 400ms, request: {method: POST}");
    read("study.yaml", &text, &no_environment).unwrap();
}

#[test]
fn a_post_needs_no_writer_that_it_does_not_reach() {
    let part = "            write: INSERT INTO log VALUES ($1)\n";
    let text = replaced(CHAIN, part, "").replace("calls: [back]", "calls: []");
    let text = text.replace(", program: {built_in: {reply: {relay: true}}}", "");
    read("study.yaml", &text, &no_environment).unwrap();
}

#[test]
fn what_follows_from_a_misspelt_section_is_not_reported_again() {
    let seen = errors_of(&replaced(CHAIN, "  databases:", "  database:"));
    assert!(seen.contains("1 error in the study file"), "{seen}");
    let seen = errors_of(&replaced(CHAIN, "          postgres:", "          postgre:"));
    assert!(seen.contains("1 error in the study file"), "{seen}");
    let seen = errors_of(&replaced(CHAIN, "          written:", "          writen:"));
    assert!(seen.contains("1 error in the study file"), "{seen}");
    let seen = errors_of(&replaced(CHAIN, "  gateways:", "  gateway:"));
    assert!(seen.contains("1 error in the study file"), "{seen}");
    let seen = errors_of(&replaced(CHAIN, "            write:", "            wite:"));
    assert!(seen.contains("1 error in the study file"), "{seen}");
}

#[test]
fn what_follows_from_a_misspelt_program_is_not_reported_again() {
    for (program, slip) in [
        ("        airline:\n          server", "        airlin:\n          server"),
        ("{airline: {part: flights", "{airlin: {part: flights"),
        ("part: flights", "part: flight"),
    ] {
        let seen = errors_of(&replaced(AIRLINE, program, slip));
        assert!(seen.contains("1 error in the study file"), "{seen}");
    }
}

#[test]
fn the_length_of_a_single_load_goes_before_that_of_all() {
    let mut chain = read("chain.yaml", CHAIN, &no_environment).unwrap().0;
    chain.paper.slice = Some(TimeSpan::from_secs(60));
    let paper = chain.with_profile(Profile::Paper);
    assert_eq!(paper.loads["reads"].length, Some(Length::Requests(1_000_000)));
    assert_eq!(paper.loads["writes"].length, Some(Length::Slice(TimeSpan::from_secs(60))));
}

#[test]
fn a_discarded_load_is_changed_as_a_whole() {
    let chain = read("chain.yaml", CHAIN, &no_environment).unwrap().0;
    let changes = chain.spring.clone();
    let max = TimeSpan::from_secs(30);
    assert_eq!(chain.with(&changes).settle, Settle { max, ..Settle::default() });
}

#[test]
fn an_empty_file_is_answered_with_where_to_start() {
    assert_snapshot!(errors_of("# nothing yet\n"));
}

#[test]
fn a_file_without_a_byte_is_answered_with_where_to_start() {
    assert!(errors_of("").contains("toll study --default"));
}

#[test]
fn endless_nesting_is_refused() {
    let nested: String = (0..3000).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    assert!(errors_of(&nested).contains("nested deeper"));
    assert!(errors_of(&"[".repeat(100_000)).contains("not YAML"));
}

#[test]
fn a_bracket_that_is_never_closed_is_shown_at_the_end_of_the_file() {
    assert_snapshot!(errors_of(&format!("{SOUND}quick: {{rounds: 5")));
}

#[test]
fn all_errors_of_a_file_are_shown_at_once_in_the_order_of_its_lines() {
    let text = with("baseline: bare", "baseline: bear")
        .replace("port: 9000", "prt: 9000")
        .replace("mtls: strict", "mtls: strikt")
        .replace("slice: 400ms", "slice: 400")
        .replace("for: 100ms", "for: 2s")
        .replace("rounds: 8", "rounds: 8\nrounds: 6");
    assert_snapshot!(errors_of(&text));
}

#[test]
fn what_follows_from_a_reported_error_is_not_reported_again() {
    let text = with("variants:", "variant:");
    let seen = errors_of(&text);
    assert!(seen.contains("1 error in the study file"), "{seen}");
}

#[test]
fn a_sound_study_is_read_without_warning() {
    let (study, warnings) = read("sound.yaml", SOUND, &no_environment).unwrap();
    assert_eq!(warnings, []);
    assert_eq!(
        study.variants.keys().map(Name::as_str).collect::<Vec<_>>(),
        ["bare", "envoy", "mesher"]
    );
    assert_eq!(study.loads["flat-out"].length, Some(Length::Requests(1000)));
    assert_eq!(study.loads["flat-out"].model, LoadModel::Closed(Closed { connections: 36 }));
}

#[test]
fn a_binary_is_found_through_its_environment_variable() {
    let env = |name: &str| (name == "MESHER_BIN").then(|| "/opt/mesher".to_owned());
    let (study, _) = read("study.yaml", SOUND, &env).unwrap();
    assert_eq!(binary_of(&study), &Binary::Path("/opt/mesher".into()));
}

#[test]
fn a_binary_whose_variable_is_not_set_is_kept_with_its_reason() {
    assert_eq!(binary_of(&sound()).path(), Err("MESHER_BIN"));
}

#[test]
fn an_empty_variable_is_as_good_as_none() {
    let (study, _) = read("study.yaml", SOUND, &|_| Some(String::new())).unwrap();
    assert_eq!(binary_of(&study).path(), Err("MESHER_BIN"));
}

fn binary_of(study: &Study) -> &Binary {
    match &study.variants["mesher"].sidecar {
        Some(Sidecar::Mesher { binary, .. }) => binary,
        other => panic!("not Mesher: {other:?}"),
    }
}

#[test]
fn an_anchor_stands_for_its_value() {
    let text =
        with("{slice: 250ms, max: 3s}", "&short {slice: 250ms, max: 2s}\nquick: {settle: *short}");
    let (study, _) = read("study.yaml", &text, &no_environment).unwrap();
    assert_eq!(study.quick.settle, Some(study.settle));
}

#[test]
fn letters_of_several_bytes_do_not_move_the_caret() {
    let text = with("study: sound", "question: Où ça coûte ?\nstudy: sound");
    let seen = errors_of(&text.replace("rounds: 8", "rounds: x # é"));
    assert!(seen.contains("study.yaml:20:9"), "{seen}");
}

#[test]
fn the_default_profile_changes_nothing() {
    assert_eq!(sound().with_profile(Profile::Default), sound());
}

#[test]
fn the_quick_profile_has_fewer_rounds_and_cycles() {
    let quick = sound().with_profile(Profile::Quick);
    assert_eq!((quick.rounds, quick.cycles), (4, 3));
    assert_eq!(quick.idle, TimeSpan::from_millis(500));
    assert_eq!(quick.loads, sound().loads);
}

#[test]
fn the_rounds_of_a_profile_go_before_the_time_and_the_width_of_the_study() {
    let text = with("rounds: 8", "for: 5m\nwidth: 3%");
    let (study, _) = read("study.yaml", &text, &no_environment).unwrap();
    assert_eq!((study.time, study.width), (Some(TimeSpan::from_secs(300)), Share::percent(3.0)));
    let quick = study.with_profile(Profile::Quick);
    assert_eq!((quick.rounds, quick.time, quick.width), (4, None, None));
}

#[test]
fn the_slice_of_a_profile_goes_before_the_requests_of_a_load() {
    let mut study = sound();
    study.paper.slice = Some(TimeSpan::from_secs(60));
    let minute = Length::Slice(TimeSpan::from_secs(60));
    let paper = study.with_profile(Profile::Paper);
    assert!(paper.loads.values().all(|load| load.length == Some(minute)));
}

#[test]
fn virtual_users_without_stages_stay_for_two_seconds() {
    let text = replaced(TRACED, "ramp: 1s, hold: 4s, ramp_down: 500ms, ", "");
    let (study, _) = read("traced.yaml", &text, &no_environment).unwrap();
    let LoadModel::Vus(users) = study.loads["users"].model else { panic!("{study:?}") };
    assert_eq!([users.ramp, users.ramp_down], [TimeSpan::from_secs(0); 2]);
    assert_eq!((users.hold, users.start), (TimeSpan::from_secs(2), 0));
}

#[test]
fn a_curve_is_a_load_for_each_of_its_rates() {
    let text = with("{open: {rate: 50% of capacity}, slice: 400ms}", "{curve: {steps: 5}}");
    let (study, _) = read("study.yaml", &text, &no_environment).unwrap();
    let names = study.loads["same-rate"].names(&"same-rate".parse().unwrap());
    let percents = ["10", "33", "55", "78", "100"];
    assert_eq!(names, percents.map(|percent| format!("same-rate-{percent}")));
}

fn in_one_line(seen: &str) -> String {
    seen.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ")
}

/// A study of the older shape, by what is wrong with it now.
fn older(part: &str, replacement: &str) -> String {
    errors_of(&with(part, replacement))
}

#[test]
fn each_key_of_older_studies_is_answered_once_with_what_took_its_place() {
    let mut words: BTreeSet<&str> = RETIRED.iter().map(|retired| retired.word).collect();
    for (part, written, retired, instead) in [
        ("rounds: 8", "blocks: 5", "blocks", "`rounds: 8`"),
        ("rounds: 8", "bring_up: together", "bring_up", "remove it"),
        ("rounds: 8", "warm_up: {min: 2s, max: 10s}", "warm_up", "remove it"),
        ("slice: 400ms", "duration: 30s", "duration", "`slice: 400ms`"),
        ("rounds: 8", "quick: {duration: 3s}", "duration", "`for: 5m`"),
        ("max: 3s", "max: 3s, rehearse: true", "rehearse", "remove it"),
        ("50% of capacity", "60% of knee", "60% of knee", "50% of capacity"),
        (
            "{open: {rate: 50% of capacity}, slice: 400ms}",
            "{vus: {users: 9, scale: {knee: 9/s}}}",
            "knee",
            "scale: {capacity: 1526/s}",
        ),
    ] {
        words.remove(retired.split_whitespace().last().unwrap());
        let seen = older(part, written);
        let said = format!("`{retired}` is of an older kind of study file");
        assert!(seen.contains("1 error in the study file"), "{seen}");
        let seen = in_one_line(&seen);
        assert!(seen.contains(&said) && seen.contains(instead), "{seen}");
    }
    assert_eq!(words, BTreeSet::new(), "never tried");
}

#[test]
fn each_service_and_database_of_an_older_study_is_answered_once_with_its_program() {
    let mut keys: BTreeSet<&str> = PLAYED.iter().flat_map(|played| played.keys).copied().collect();
    for (study, program, older) in [
        (
            SOUND,
            "program: {built_in: {reply: {bytes: 5}, stall: {every: 1s, for: 100ms}}}",
            "reply: {bytes: 5}\n      stall: {every: 1s, for: 100ms}",
        ),
        (TRACED, "program: {petclinic: {part: vets}}", "petclinic: vets"),
        (
            TRACED,
            "program: {petclinic: {part: gateway, heap_mib: 256}}",
            "heap_mib: 256\n      petclinic: gateway",
        ),
        (SWEPT, "program: {nginx: {bytes: 615}}", "nginx: {bytes: 615}"),
        (
            AIRLINE,
            "program: {airline: {part: flights, database: airline-db, connections: 64}}",
            "airline: flights, database: airline-db, connections: 64",
        ),
        (
            AIRLINE,
            "program: {airline: {part: web, work: {cpu: 100us}}}",
            "work: {cpu: 100us}, airline: web",
        ),
        (
            &with("port: 9000", "program: {command: [./a, \"1\", \"b, c\"]}, port: 9000"),
            "program: {command: [./a, \"1\", \"b, c\"]}",
            "command: [./a, \"1\", \"b, c\"]",
        ),
        (
            &with("port: 9000", "program: {built_in: {runtime: spring, postgres: {database: d, read: \"a, b: c\"}}}, port: 9000")
                .replace("variants:", "  databases: {d: {port: 1, program: {postgres: {seed: SELECT 1}}}}\nvariants:"),
            "program: {built_in: {runtime: spring, postgres: {database: d, read: \"a, b: c\"}}}",
            "runtime: spring, postgres: {database: d, read: \"a, b: c\"}",
        ),
        (
            &replaced(CHAIN, "program:\n        postgres:\n          seed: CREATE TABLE log (line text)\n          written: SELECT count(line), count(DISTINCT line) FROM log", "program: {postgres: {seed: a b, written: \"c, d\"}}"),
            "program: {postgres: {seed: a b, written: \"c, d\"}}",
            "server: postgres\n      seed: a b\n      written: c, d",
        ),
        (
            &replaced(AIRLINE, "program:\n        airline:\n          server: mongodb\n          host: db.airline.example\n          flights: 200\n          seats: 1000\n          customers: 100", "program: {airline: {server: mongodb, host: db.airline.example, flights: 200, seats: 1000, customers: 100}}"),
            "program: {airline: {server: mongodb, host: db.airline.example, flights: 200, seats: 1000, customers: 100}}",
            "server: mongodb\n      external: {host: db.airline.example}\n      airline: {flights: 200, seats: 1000, customers: 100}",
        ),
    ] {
        read("new.yaml", study, &no_environment).unwrap();
        let seen = errors_of(&replaced(study, program, older));
        assert!(seen.contains("1 error in the study file"), "{seen}");
        assert!(in_one_line(&seen).contains(&format!("write `{program}`")), "{seen}");
        keys.retain(|key| !older.contains(&format!("{key}: ")));
    }
    assert_eq!(keys, BTreeSet::new(), "never tried");
}

#[test]
fn keys_beside_a_program_are_shown_in_it() {
    for (written, shown) in [
        (
            "program: {built_in: {stall: {every: 1s, for: 1ms}}}, work: {cpu: 0us}",
            "program: {built_in: {stall: {every: 1s, for: 1ms}, work: {cpu: 0us}}}",
        ),
        ("program: built_in, work: {cpu: 0us}", "program: {built_in: {work: {cpu: 0us}}}"),
    ] {
        let seen = errors_of(&with("port: 9000", &format!("port: 9000, {written}")));
        assert!(seen.contains("1 error in the study file"), "{seen}");
        assert!(in_one_line(&seen).contains(&format!("write `{shown}`")), "{seen}");
    }
}

#[test]
fn what_is_wrong_in_a_program_of_an_older_study_is_shown_too() {
    let older = "airline: flight, database: airline-db, connections: 0";
    let program = "program: {airline: {part: flights, database: airline-db, connections: 64}}";
    assert_snapshot!(errors_of(&replaced(AIRLINE, program, older)));
}

#[test]
fn a_program_that_needs_no_key_may_stand_as_its_name() {
    for (name, program) in
        [("built_in", Program::default()), ("nginx", Program::Nginx(Default::default()))]
    {
        let text = with("port: 9999\n", "port: 9999\n      node: 1\n");
        let text = replaced(
            &text,
            "{built_in: {reply: {bytes: 5}, stall: {every: 1s, for: 100ms}}}",
            name,
        );
        let (study, _) = read("study.yaml", &text, &no_environment).unwrap();
        assert_eq!(study.app.services["server"].program, program);
    }
}

#[test]
fn a_study_of_the_older_shape_is_answered_key_by_key() {
    let older = SOUND
        .replace("50% of capacity", "60% of knee")
        .replace("slice: 400ms", "duration: 30s")
        .replace("rounds: 8\n", "blocks: 5\nbring_up: block\nwarm_up: {min: 2s, max: 10s}\n")
        .replace("max: 3s}", "max: 3s, rehearse: true}");
    assert_snapshot!(errors_of(&older));
}

#[test]
fn every_file_in_studies_is_built_in_and_sound() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let files: IndexMap<String, String> = files
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect();
    assert_eq!(files.len(), builtin().len());
    for (name, text) in builtin() {
        assert_eq!(files.get(*name).map(String::as_str), Some(*text), "{name}");
        let (study, warnings) = read(name, text, &no_environment).unwrap();
        assert_eq!((study.name.as_str(), warnings), (*name, vec![]));
    }
}

#[test]
fn the_annotated_default_states_the_defaults() {
    let minimal = "\
study: my-study
question: What does a sidecar on both ends of one HTTP call cost?
app:
  entry: client
  services: {client: {port: 9000, calls: [server]}, server: {port: 9999}}
variants: {bare: {}, sidecar: {sidecar: {proxy: envoy}}}
baseline: bare
loads: {same-rate: {open: {rate: 50% of capacity}, slice: 400ms}}
";
    let [stated, built_in] = [annotated_default(), minimal]
        .map(|text| read("default.yaml", text, &no_environment).unwrap().0);
    assert_eq!(stated, built_in);
}

#[test]
fn the_alternatives_of_the_annotated_default_are_a_study_too() {
    read("default.yaml", &default_with_alternatives(), &no_environment).unwrap();
}

#[test]
fn every_key_of_the_schema_is_in_the_annotated_default() {
    let root = tree::grow(&default_with_alternatives(), &mut Vec::new()).unwrap();
    let (mut known, mut used) = (BTreeSet::new(), BTreeSet::new());
    keys_of(&schema(), "", &mut known);
    keys_in(&root, &schema(), "", &mut used);
    // What changes a study has the same keys everywhere; quick shows them for all.
    known.retain(|key| !key.starts_with("/paper/") && !key.starts_with("/spring/"));
    assert_eq!(known.difference(&used).collect::<Vec<_>>(), Vec::<&String>::new());
}

fn default_with_alternatives() -> String {
    annotated_default().replace("#: ", "")
}

/// The keys of a mapping's schema, whatever decides on them.
fn all_keys(schema: &Value) -> Vec<(&str, &Value)> {
    match Shape::of(schema) {
        Shape::Keys(Keys { known, .. }) | Shape::WordOrKeys(_, Keys { known, .. }) => known,
        Shape::Tagged(tagged) => {
            tagged.branches.into_iter().flat_map(|(_, keys)| keys.known).collect()
        }
        _ => Vec::new(),
    }
}

fn keys_of(schema: &Value, at: &str, found: &mut BTreeSet<String>) {
    if let Shape::Names(values) | Shape::Foreign(values) = Shape::of(schema) {
        keys_of(values, &format!("{at}/*"), found);
    }
    for (key, schema) in all_keys(schema) {
        keys_of(schema, &format!("{at}/{key}"), found);
        found.insert(format!("{at}/{key}"));
    }
}

fn keys_in(node: &Node, schema: &Value, at: &str, found: &mut BTreeSet<String>) {
    let tree::Content::Mapping(entries) = &node.content else { return };
    let names = match Shape::of(schema) {
        Shape::Names(values) | Shape::Foreign(values) => Some(values),
        _ => None,
    };
    let keys = all_keys(schema);
    for entry in entries {
        let known = keys.iter().find(|(key, _)| *key == entry.key);
        let step = if names.is_some() { "*" } else { &entry.key };
        let schema = names.or(known.map(|(_, schema)| *schema)).unwrap();
        keys_in(&entry.node, schema, &format!("{at}/{step}"), found);
        found.insert(format!("{at}/{step}"));
    }
}

#[test]
fn the_examples_of_the_schema_are_of_its_types() {
    serde_json::from_value::<Study>(example_of(&schema())).unwrap();
    let mut with_all_keys = example_of(&schema());
    for (key, schema) in all_keys(&schema()) {
        with_all_keys[key] = example_of(schema);
    }
    serde_json::from_value::<Study>(with_all_keys).unwrap();
}

#[test]
fn every_key_of_the_schema_is_described() {
    fn undescribed(schema: &Value, at: &str, found: &mut Vec<String>) {
        if let Shape::Names(values) = Shape::of(schema) {
            undescribed(values, &format!("{at}/*"), found);
        }
        for (key, schema) in all_keys(schema) {
            let described = schema.get("description").is_some() || schema.get("const").is_some();
            if !described {
                found.push(format!("{at}/{key}"));
            }
            undescribed(schema, &format!("{at}/{key}"), found);
        }
    }
    let mut found = Vec::new();
    undescribed(&schema(), "", &mut found);
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn a_stored_study_is_read_back_as_it_was() {
    let stored = serde_json::to_string(&sound()).unwrap();
    assert_eq!(serde_json::from_str::<Study>(&stored).unwrap(), sound());
}

#[test]
fn a_rate_is_absolute_or_a_share_of_the_capacity() {
    let capacity = |percent| Rate::OfCapacity(Share::percent(percent).unwrap());
    assert_eq!("500/s".parse(), Ok(Rate::PerSecond(500.0)));
    assert_eq!("0.5 /s".parse(), Ok(Rate::PerSecond(0.5)));
    assert_eq!("50% of capacity".parse(), Ok(capacity(50.0)));
    assert_eq!("12.5%of capacity".parse(), Ok(capacity(12.5)));
    for wrong in
        ["500", "0/s", "0% of capacity", "101% of capacity", "60% of bee", "-5/s", "1e3/s", ""]
    {
        assert!(wrong.parse::<Rate>().is_err(), "{wrong}");
    }
}

#[test]
fn a_duration_is_a_number_and_a_unit() {
    let micros = |text: &str| text.parse::<TimeSpan>().map(|span| span.get().as_micros());
    assert_eq!(micros("300us"), Ok(300));
    assert_eq!(micros("1.5 s"), Ok(1_500_000));
    assert_eq!(micros("5m"), Ok(300_000_000));
    for wrong in ["30", "s", "", "-1s", "1h", "0.5us", "1e3s", "infs", "99999999999m", "1 s s"] {
        assert!(micros(wrong).is_err(), "{wrong}");
    }
}

proptest! {
    #[test]
    fn a_duration_is_read_back_as_it_was(micros in 0..=365 * 86_400_000_000_u64) {
        let span = TimeSpan::from_micros(micros);
        prop_assert_eq!(span.to_string().parse(), Ok(span));
    }

    #[test]
    fn a_duration_is_the_same_in_every_unit(seconds in 0..1_000_000_u64) {
        let spans = [format!("{seconds}s"), format!("{seconds}000ms"), format!("{seconds}000000 us")];
        for span in spans {
            prop_assert_eq!(span.parse(), Ok(TimeSpan::from_secs(seconds)));
        }
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "[a-z:{}\\[\\],&* \"$#\n-]{0,60}") {
        let _ = read("any.yaml", &text, &no_environment);
        let _ = read("any.yaml", &SOUND.replace("{bytes: 5}", &text), &no_environment);
    }
}

/// Editors check with the schema alone: it must accept and refuse what the reader does.
#[test]
fn a_general_validator_agrees_with_the_reader_on_the_shape() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let accepts = |text: &str| {
        let root = tree::grow(text, &mut Vec::new()).unwrap();
        validator.is_valid(&root.plain())
    };
    let alternatives = default_with_alternatives();
    let sound = [SOUND, CHAIN, TRACED, SWEPT, AIRLINE, annotated_default(), &alternatives];
    let sound = sound.into_iter().chain(builtin().iter().map(|(_, text)| *text));
    sound.into_iter().for_each(|text| assert!(accepts(text), "{text}"));
    let broken = [
        with("port: 9000", "prt: 9000"),
        with("port: 9000", "port: 70000"),
        with("mtls: strict", "mtls: strikt"),
        with("proxy: envoy, mtls: strict", "proxy: envoy, binary: x"),
        with("rounds: 8", "rounds: five"),
        with("slice: 400ms", "slice: 400"),
        with("slice: 400ms", "slice: 400ms, requests: 1000"),
        with("slice: 400ms", "slice: 400ms, colour: red"),
        with("open: {rate: 50% of capacity}, ", ""),
        with("50% of capacity", "60%"),
        with("50% of capacity", "0"),
        with("  same-rate:", "  Same Rate:"),
        with("settle: {slice: 250ms, max: 3s}", "settle:"),
        with("rounds: 8", "headline: [latency_p5]"),
        with("rounds: 8", "headline: []"),
        with("study: sound\n", ""),
        with("calls: [server]", "calls: [server], program: {command: []}"),
        with("calls: [server]", "calls: [server], program: petclinic"),
        with("calls: [server]", "calls: [server], program: {}"),
        with("{built_in: {reply", "{nginx: {reply"),
        with("{built_in: {reply", "{command: [x], built_in: {reply"),
        replaced(CHAIN, "relay: true", "relay: yes please"),
        replaced(CHAIN, "replicas: 2", "replicas: 0"),
        replaced(CHAIN, "to: front", "too: front"),
        replaced(CHAIN, "runtime: spring", "runtime: sprig"),
        replaced(CHAIN, "{path: /log}", "{path: log}"),
        replaced(CHAIN, "method: POST", "method: PAST"),
        with("calls: [server]", "calls: [{server: {per_reqest: 2}}]"),
        with("calls: [server]", "calls: [{server: {per_request: 0}}]"),
        replaced(CHAIN, "{requests: 1000000}", "{}"),
        replaced(CHAIN, "{requests: 1000000}", "{requests: 1000000, slice: 1m}"),
        replaced(CHAIN, "p95: 8.2", "p95: -8.2"),
        replaced(CHAIN, "back: 10", "back: -10"),
        replaced(CHAIN, "derived: cpu_change", "derived: cpu_chnge"),
        replaced(CHAIN, "read: SELECT 1 AS one", "read: \"\""),
        replaced(TRACED, "users: 320", "users: 0"),
        replaced(TRACED, "    vus: {users", "    open: {rate: 5/s}\n    vus: {users"),
        replaced(TRACED, "slice: 400ms", "slice: 400ms, requests: 5"),
        replaced(TRACED, "kind: opentelemetry", "kind: opentelemetri"),
        replaced(TRACED, "otel.logs.exporter: none", "otel.logs.exporter: [none]"),
        replaced(TRACED, "http://localhost:9080/metrics", "http://gateway:9080/metrics"),
        replaced(TRACED, "{part: vets}", "{part: vet}"),
        replaced(TRACED, "heap_mib: 256", "heap_mib: 32"),
        replaced(SWEPT, "proxy: any", "proxy: ztunel"),
        replaced(SWEPT, "bytes: 615", "bytes: 2000000000"),
        replaced(SWEPT, "rate: [20/s, 50/s]", "rate: []"),
        replaced(SWEPT, "replicas: {page: [1, 10]}", "replicas: {}"),
        replaced(SWEPT, "nodes: [1, 2]", "node: [1, 2]"),
        replaced(AIRLINE, "egress: bypass", "egress: bypas"),
        replaced(AIRLINE, "egress: bypass", "egress: gateway"),
        replaced(AIRLINE, "sni_proxy: true", "sni_prox: true"),
        replaced(AIRLINE, "part: flights", "part: flight"),
        replaced(AIRLINE, "part: web", "part: web, connections: 5"),
        replaced(AIRLINE, "part: flights, database: airline-db", "part: flights"),
        replaced(AIRLINE, "server: mongodb", "server: mongo"),
        replaced(AIRLINE, "weight: 40, ", ""),
        replaced(AIRLINE, "weight: 40", "weight: 40, colour: red"),
        replaced(AIRLINE, "connections: [1, 5, 20]", "connections: []"),
    ];
    broken.iter().for_each(|text| assert!(!accepts(text), "{text}"));
}

#[test]
fn several_pods_of_the_entry_need_a_gateway_before_them() {
    let study = "study: s\napp:\n  entry: api\n  services:\n    api: {port: 8080, replicas: 2}\nvariants: {bare: {}}\nbaseline: bare\nloads:\n  l: {open: {rate: 10/s}}\n";
    let said = errors_of(study);
    assert!(
        said.contains("and it has 2 pods") && said.contains("put a gateway before it"),
        "{said}"
    );
}

/// A load with a header from the environment.
fn with_token(env: &dyn Fn(&str) -> Option<String>) -> Result<Study, StudyErrors> {
    let request = "slice: 400ms, request: {headers: {authorization: \"Bearer ${TOKEN}\"}}}";
    let text = SOUND.replacen("slice: 400ms}", request, 1);
    assert_ne!(text, SOUND);
    read("study.yaml", &text, env).map(|(study, _)| study)
}

#[test]
fn the_value_of_a_header_from_the_environment_is_not_in_the_study() {
    let study = with_token(&|name| (name == "TOKEN").then(|| "secret".into())).unwrap();
    let written = serde_json::to_string(&study).unwrap();
    assert!(written.contains("Bearer {{env.TOKEN}}") && !written.contains("secret"), "{written}");
}

#[test]
fn a_header_needs_its_variable() {
    let errors = with_token(&no_environment).unwrap_err();
    assert!(format!("{:?}", miette::Report::new(errors)).contains("TOKEN"));
}

#[test]
fn a_call_may_say_how_often() {
    let text = SOUND.replace("calls: [server]", "calls: [{server: {per_request: 2}}]");
    let (study, _) = read("study.yaml", &text, &no_environment).unwrap();
    let calls = &study.app.services["client"].calls;
    assert_eq!((calls[0].to.as_str(), calls[0].per_request), ("server", Some(2)));
    let again: Study = serde_json::from_value(serde_json::to_value(&study).unwrap()).unwrap();
    assert_eq!(again, study);
}

#[test]
fn the_first_variant_is_the_baseline_unless_another_one_is() {
    let text = SOUND.replace("baseline: bare\n", "");
    assert_ne!(text, SOUND);
    let (study, _) = read("study.yaml", &text, &no_environment).unwrap();
    assert_eq!(study.baseline().as_str(), "bare");
}

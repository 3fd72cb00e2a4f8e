//! The real command against the real lab of this machine: what it leaves behind, what it keeps, and what it
//! says when it cannot go on. What the machine does not allow is skipped with a `SKIP` line on stderr.
//!
//! The machine may be busy, so no test asks for a slice that counts, only for one that is measured; a check of
//! the load may then find fault with it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod api_server;
mod bad_input;
mod broken_path;
mod capacity;
mod clean_up;
mod full_disk;
mod left_behind;
mod load;
mod own_app;
mod planning;
mod process;
mod run_dir;
mod study_text;
mod tutorial;
mod unprivileged;
mod workplace;

/// Returns from the test with a line that the test run counts.
macro_rules! skip {
    ($($reason:tt)*) => {{
        eprintln!("SKIP {}: {}", std::thread::current().name().unwrap_or("?"), format!($($reason)*));
        return;
    }};
}
pub(crate) use skip;

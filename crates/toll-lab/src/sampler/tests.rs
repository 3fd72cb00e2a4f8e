//! What a component's counters do when one process follows another.

use std::process::{Child, Command, Stdio};

use nix::unistd::Pid;

use super::*;

fn load_generator() -> Component {
    Component { role: Role::LoadGenerator, pod: "load".into() }
}

/// A shell that has used some CPU time and waits.
fn shell() -> Child {
    use std::io::Read;
    let script = "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done; echo; read x";
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    child
}

fn clock_of(child: &Child) -> Source {
    Source::of(&Hierarchies::default(), Pid::from_raw(child.id().try_into().unwrap()))
}

fn end(child: &mut Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

fn cpu_ns(sampler: &mut Sampler) -> u64 {
    let sample = sampler.sample();
    match &sample.components.iter().find(|c| c.component == load_generator()).unwrap().cpu_ns {
        Reading::Value(ns) => *ns,
        Reading::Missing(why) => panic!("{why}"),
    }
}

#[test]
fn a_component_is_listed_from_its_start_on() {
    let mut sampler = Sampler::open().unwrap();
    assert_eq!(sampler.sample().components.len(), 1, "toll alone");
    sampler.watch(load_generator(), Source::missing("a test"));
    assert_eq!(sampler.sample().components[0].component, load_generator());
}

#[test]
fn the_clock_of_a_second_process_goes_on_where_the_first_ended() {
    let mut sampler = Sampler::open().unwrap();
    let [mut first, mut second] = [shell(), shell()];
    sampler.watch(load_generator(), clock_of(&first));
    let before = cpu_ns(&mut sampler);
    end(&mut first);
    let alone = clock_of(&second);
    sampler.watch(load_generator(), clock_of(&second));
    let Reading::Value(of_second) = alone.cpu_ns() else { panic!("it runs") };
    assert!(cpu_ns(&mut sampler) >= before + of_second);
    end(&mut second);
}

#[test]
fn what_a_helper_used_is_toll_s_own_also_when_it_has_ended() {
    let mut sampler = Sampler::open().unwrap();
    let mut helper = shell();
    let clock = clock_of(&helper);
    let Reading::Value(of_helper) = clock.cpu_ns() else { panic!("it runs") };
    let Reading::Value(before) = sampler.harness().cpu_ns else { panic!("toll runs") };
    sampler.watch_helper(clock);
    let with_it = sampler.harness();
    end(&mut helper);
    let without_it = sampler.harness();
    assert_eq!(with_it.component, harness());
    let cpu = [with_it, without_it].map(|sample| sample.cpu_ns);
    for reading in &cpu {
        assert!(matches!(reading, Reading::Value(ns) if *ns >= before + of_helper), "{reading:?}");
    }
}

#[test]
fn a_cgroup_that_goes_on_counting_is_not_counted_twice() {
    let mut this = Watched::new(load_generator(), Source::missing("a test"));
    this.last_ns = 7;
    this.go_on_with(Source::missing("a group's counter, not a clock"));
    assert_eq!(this.before_ns, 0);
}

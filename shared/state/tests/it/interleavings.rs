//! Whatever the order of ticks, deliveries, deaths, duplicates and losses: no partition is stuck for good, a worker that
//! dies is parked at 5, a healthy partition never.

use firn_model::Rule;
use firn_state::{ATTEMPT_LIMIT, RecordOutcome};
use proptest::prelude::*;

use crate::world::{COOLDOWN, End, Tick, World};

#[derive(Debug, Clone, Copy)]
enum Action {
    Tick(Rule, Tick),
    Deliver(usize),
    End(End),
    Append,
    Duplicate(usize),
    Lose(usize),
    PassTime(u16),
}

fn run(world: &mut World, actions: &[Action]) {
    for action in actions {
        match *action {
            Action::Tick(rule, until) => world.tick(rule, until),
            Action::Deliver(pick) => world.deliver(pick),
            Action::End(end) => world.end(end),
            Action::Append => world.append(),
            Action::Duplicate(pick) => world.duplicate(pick),
            Action::Lose(pick) => world.lose(pick),
            Action::PassTime(minutes) => world.pass_time(minutes),
        }
    }
}

fn rule() -> impl Strategy<Value = Rule> {
    prop::sample::select(Rule::ALL.to_vec())
}

fn tick() -> impl Strategy<Value = Tick> {
    prop_oneof![4 => Just(Tick::Whole), 1 => Just(Tick::DiesBeforeSend), 1 => Just(Tick::DiesAfterSend)]
}

/// Ends of a worker that never dies.
fn healthy() -> impl Strategy<Value = End> {
    prop_oneof![
        Just(End::Done),
        Just(End::Retry),
        Just(End::RetryUnsent),
        Just(End::Nothing),
        Just(End::Continue { progressed: true })
    ]
}

fn any_end() -> impl Strategy<Value = End> {
    prop_oneof![3 => healthy(), 3 => Just(End::Crash), 1 => Just(End::Continue { progressed: false })]
}

fn actions(end: impl Strategy<Value = End> + 'static, appends: u32) -> impl Strategy<Value = Vec<Action>> {
    let action = prop_oneof![
        4 => (rule(), tick()).prop_map(|(rule, until)| Action::Tick(rule, until)),
        6 => any::<usize>().prop_map(Action::Deliver),
        4 => end.prop_map(Action::End),
        appends => Just(Action::Append),
        2 => any::<usize>().prop_map(Action::Duplicate),
        2 => any::<usize>().prop_map(Action::Lose),
        5 => prop_oneof![0u16..12, 0u16..120, Just(400u16)].prop_map(Action::PassTime),
    ];
    prop::collection::vec(action, 0..80)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_partition_is_ever_stuck_for_good(actions in actions(any_end(), 1)) {
        let mut world = World::new();
        run(&mut world, &actions);
        // From here on nothing goes wrong any more.
        world.end(End::Crash);
        for _ in 0..(40 * 60 / 5) {
            world.tick(Rule::Tier, Tick::Whole);
            for pick in 0..4 {
                world.deliver(pick);
                world.end(End::Done);
            }
            world.pass_time(5);
        }
        prop_assert!(!world.debt, "still not merged: {world:?}");
        prop_assert!(world.queue.is_empty(), "the queue ends empty: {world:?}");
        prop_assert!(world.record.is_none(), "nothing is left behind: {world:?}");
    }

    #[test]
    fn a_healthy_partition_is_never_parked(actions in actions(healthy(), 2)) {
        let mut world = World::new();
        run(&mut world, &actions);
        prop_assert_eq!(world.parked, 0, "retries, losses and losing duplicates park nothing");
    }

    #[test]
    fn a_worker_that_always_dies_is_parked_at_5_and_then_left_alone(noise in actions(Just(End::Crash), 0)) {
        let mut world = World::new();
        world.tick(Rule::Tier, Tick::Whole);
        for action in noise {
            if world.parked == 0 {
                run(&mut world, &[action]);
            }
        }
        let mut rounds = 0;
        while world.parked == 0 {
            rounds += 1;
            prop_assert!(rounds < 1000, "never parked: {world:?}");
            world.end(End::Crash);
            world.tick(Rule::Tier, Tick::Whole);
            world.deliver(0);
            world.pass_time(11);
        }
        prop_assert!(world.starts <= u64::from(ATTEMPT_LIMIT), "{} starts", world.starts);
        let record = world.record.clone().unwrap();
        prop_assert_eq!((record.outcome, record.attempts), (Some(RecordOutcome::Parked), ATTEMPT_LIMIT));
        let (until, starts) = (record.not_before.unwrap(), world.starts);
        while world.now < until {
            world.tick(Rule::Full, Tick::Whole);
            (0..3).for_each(|pick| world.deliver(pick));
            prop_assert_eq!(world.starts, starts, "worked on during the cool-down");
            world.pass_time(5);
        }
        world.tick(Rule::Tier, Tick::Whole);
        (0..20).for_each(|_| world.deliver(0));
        prop_assert_eq!(world.starts, starts + 1, "planned again when the cool-down of {} is over", COOLDOWN);
    }
}

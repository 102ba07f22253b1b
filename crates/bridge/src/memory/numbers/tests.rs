//! Each number lies where `layout::plan` and the texts of the encodings put it.
//! Every field has a value of its own, so that two that are exchanged differ.

use super::*;

#[test]
fn a_plan_has_each_number_in_its_place() {
    let numbers: Vec<f64> = (0..plan::NUMBERS).map(|index| index as f64 + 100.0).collect();
    let (limits, made) = decode_plan(&numbers).expect("as many as there are");
    let at = |index: usize| index + 100;
    assert_eq!(limits.tasks_max, at(plan::TASKS_MAX));
    assert_eq!(limits.task_bytes_max, at(plan::TASK_BYTES_MAX));
    assert_eq!(limits.queue_bytes_max, at(plan::QUEUE_BYTES_MAX));
    assert_eq!(limits.broadcasts_max, at(plan::BROADCASTS_MAX));
    assert_eq!(limits.tasks_per_worker_max, at(plan::TASKS_PER_WORKER_MAX));
    assert_eq!(limits.waiting_per_worker_max, at(plan::WAITING_PER_WORKER_MAX));
    assert_eq!(limits.call_depth_max as usize, at(plan::CALL_DEPTH_MAX));
    assert_eq!(limits.tasks_per_tenant_max, at(plan::TASKS_PER_TENANT_MAX));
    assert_eq!(limits.worker_tasks_max, at(plan::WORKER_TASKS_MAX));
    assert_eq!(limits.spin, Duration::from_micros(at(plan::SPIN_US) as u64));
    assert_eq!(made.patience, Duration::from_micros(at(plan::PATIENCE_US) as u64));
    assert_eq!(
        (made.workers as usize, made.workers_max as usize),
        (at(plan::WORKERS), at(plan::WORKERS_MAX))
    );
    assert!(made.steals && made.blocks);
}

#[test]
fn a_plan_without_bounds_saturates_and_one_of_another_length_is_refused() {
    let (limits, made) = decode_plan(&[f64::INFINITY; plan::NUMBERS]).expect("as many as there are");
    assert_eq!((limits.tasks_max, limits.call_depth_max), (usize::MAX, u32::MAX));
    assert_eq!(made.patience, Duration::from_micros(u64::MAX));
    let (_, made) = decode_plan(&[0.0; plan::NUMBERS]).expect("as many as there are");
    assert!(!made.steals && !made.blocks);
    for count in [0, plan::NUMBERS - 1, plan::NUMBERS + 1] {
        assert!(decode_plan(&vec![1.0; count]).is_none(), "{count} numbers");
    }
}

/// Times whose fields are `first` and the numbers after it.
fn times(first: f64) -> Times {
    let [count, mean, p50, p90, p99, p999, max] = std::array::from_fn(|index| first + index as f64);
    Times { count, mean, p50, p90, p99, p999, max }
}

#[test]
fn counts_and_workers_are_written_in_the_order_of_their_text() {
    let counts = Counts {
        waiting: 0,
        waiting_bytes: 1,
        running: 2,
        ended: 3,
        died: 4,
        wake_ups: 5,
        workers: 6,
        asleep: 7,
        failed: 8,
        stolen: 9,
        errors: 10,
        wait: times(11.0),
        run: times(18.0),
    };
    assert_eq!(counts.encode(), std::array::from_fn(|index| index as f64));
    let worker = WorkerCounts {
        slot: 0,
        waiting: 1,
        running: 2,
        ended: 3,
        failed: 4,
        stolen: 5,
        wake_ups: 6,
        utilisation: 7.0,
        wait: times(8.0),
        run: times(15.0),
    };
    assert!(worker.encode().eq((0..22).map(f64::from)));
}

#[test]
fn slots_follow_the_time_of_the_next_check_rounded_up() {
    let shrunk = |next_ns| Shrunk { dismissed: vec![3, 1], next_ns }.encode();
    assert_eq!(shrunk(None), [0, 3, 1]);
    assert_eq!(shrunk(Some(1_000_001.0)), [2, 3, 1]);
    assert_eq!(Overdue { condemned: vec![], next_ns: Some(1.0) }.encode(), [1]);
}

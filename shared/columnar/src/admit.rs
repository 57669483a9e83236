//! What a merge may take: memory is admitted before work starts (design section 5, "Memory").
//!
//! A pure formula over figures from the footers. It says how the work is laid out (threads, window, read-ahead, whether readers stay
//! open), or how many of the inputs would fit at once.

/// Memory of the process that no merge accounts for: code, allocator, runtime, metadata of the table.
pub const BASE_BYTES: u64 = 16 << 20;
/// A run of the window's list, and what it may take while the list grows.
const RUN_BYTES: u64 = 16 * 2;
/// Output rows of a window for each run that it may have: a window ends early where inputs alternate row by row.
const ROWS_PER_RUN: u64 = 4;
/// Runs that any window may have.
const LEAST_RUNS: u64 = 32_768;
/// Hash state of a row of the proof.
const STATE_BYTES: u64 = 8;
/// Rows consumed for a window, in output rows: more are consumed only where most rows are duplicates.
pub(crate) const CONSUMED_PER_ROW: u64 = 2;
/// Windows are not made smaller than this to save memory: every window opens every column of every input once.
const LEAST_WINDOW_ROWS: u64 = 32_768;
/// Headers, dictionaries and page indexes of an encoded window, whatever its rows.
const ENCODED_SLACK: u64 = 1 << 20;
/// Reading lean: bytes of a batch and of read-ahead.
pub(crate) const LEAN_READ_BYTES: usize = 128 << 10;
pub(crate) const LEAN_AHEAD_BYTES: usize = 64 << 10;

/// Runs that a window of `rows` rows may have.
pub(crate) fn window_runs(rows: u64) -> u64 {
    (rows / ROWS_PER_RUN).max(LEAST_RUNS)
}

/// What one column of one input takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenCost {
    /// Bytes while rows are read, with ordinary batches and read-ahead.
    pub open: u64,
    /// Bytes with lean ones.
    pub lean: u64,
    /// Bytes that opening takes for a moment on top.
    pub opening: u64,
}

/// What one input takes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InputDemand {
    /// Rows.
    pub rows: u64,
    /// Bytes of its footer, held throughout.
    pub footer_bytes: u64,
    /// Each column of the output, in the order of the schema.
    pub columns: Vec<OpenCost>,
    /// Its key columns together; zero without an order.
    pub keys: OpenCost,
    /// What a batch of its keys takes.
    pub key_batch: KeyBatchDemand,
}

/// What a batch of keys takes, read and encoded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyBatchDemand {
    /// Bytes a row, whatever the values.
    pub row_bytes: u64,
    /// Mean bytes of a value of each key column.
    pub value_bytes: Vec<u64>,
}

impl KeyBatchDemand {
    /// Bytes of a batch of at most `rows` rows, which ends where the values of a column reach `read_bytes`, but has one row.
    fn bytes(&self, rows: u64, read_bytes: u64) -> u64 {
        // Once as values and once encoded.
        let values = self.value_bytes.iter().map(|value| 2 * (rows * value).min(read_bytes.max(*value)));
        rows * self.row_bytes + values.sum::<u64>()
    }
}

/// What a merge takes, whatever its inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobDemand {
    /// False when rows follow in commit order: then one input is open at a time.
    pub ordered: bool,
    /// Upload parts held by the sinks.
    pub upload_bytes: u64,
    /// Bytes of an encoded row group (`rowGroupMb`).
    pub row_group_bytes: u64,
    /// Rows of a row group at most.
    pub max_row_group_rows: u64,
    /// Mean bytes of an encoded row, from the inputs; at least 1.
    pub encoded_row_bytes: u64,
    /// Bytes that an encoder holds besides its pages: dictionary, hash table, the page in work.
    pub encoder_bytes: u64,
    /// Bytes of a row that a thread holds of the column in work, on top of what it is read and encoded by: on the fast path a window's
    /// column is whole before it is encoded.
    pub gathered_row_bytes: u64,
    /// Bytes handed to an encoder at once.
    pub chunk_bytes: u64,
    /// Rows of keys read at once.
    pub key_rows: u64,
    /// Ordinary bytes of a batch and of read-ahead.
    pub read_bytes: usize,
    /// Read-ahead.
    pub ahead_bytes: usize,
    /// Inputs are read in the background: what a window needs of the columns in work, and of the next ones, is under way at once.
    pub far: bool,
}

/// How a merge is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Admission {
    /// Columns in work at once.
    pub threads: usize,
    /// Output rows of a window (a row group).
    pub window_rows: u64,
    /// Every reader stays open from window to window.
    pub keep_open: bool,
    /// Key columns are closed after each batch.
    pub reopen_keys: bool,
    /// Rows of keys read at once.
    pub key_rows: u64,
    /// Bytes of a batch.
    pub read_bytes: usize,
    /// Bytes read ahead.
    pub ahead_bytes: usize,
    /// Bytes that an encoded window may take: rows differ in size, and where they are larger than the mean a window is made smaller.
    pub encoded_bytes: u64,
    /// Bytes that all of it takes.
    pub needed_bytes: u64,
}

/// Not all inputs fit at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// Bytes that the leanest layout takes.
    pub needed_bytes: u64,
    /// How many inputs fit at once, split into balanced parts in commit order; 0 or 1 when not even two do.
    pub fan_in: usize,
}

/// Lays out the merge of `inputs` within `budget` bytes on at most `threads` threads.
///
/// # Errors
/// [`Refusal`] when even the leanest layout does not fit.
pub fn admit(job: &JobDemand, inputs: &[InputDemand], budget: u64, threads: usize) -> Result<Admission, Refusal> {
    let all = Totals::of(job, inputs);
    if let Some(admission) = best(job, &all, budget, threads) {
        return Ok(admission);
    }
    let needed_bytes = leanest(job, &all).needed_bytes;
    // The smallest number of balanced parts of which each fits.
    let fan_in = (2..=inputs.len().div_ceil(2)).find_map(|parts| {
        let fits = balanced(inputs.len(), parts)
            .all(|part| leanest(job, &Totals::of(job, &inputs[part])).needed_bytes <= budget);
        fits.then(|| inputs.len().div_ceil(parts))
    });
    Err(Refusal { needed_bytes, fan_in: fan_in.unwrap_or(0) })
}

/// Splits `n` inputs into `parts` runs of neighbours whose lengths differ by one at most.
pub fn balanced(n: usize, parts: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let parts = parts.max(1);
    (0..parts).map(move |part| part * n / parts..(part + 1) * n / parts)
}

/// Sums over the inputs of a merge.
#[derive(Debug, Clone, Default)]
struct Totals {
    rows: u64,
    footers: u64,
    keys: OpenCost,
    /// Rows and batch of each input.
    key_batches: Vec<(u64, KeyBatchDemand)>,
    /// Per column over all inputs; without an order the dearest input.
    columns: Vec<OpenCost>,
    /// The dearest single opening.
    opening: u64,
}

impl Totals {
    fn of(job: &JobDemand, inputs: &[InputDemand]) -> Totals {
        let mut all = Totals::default();
        for input in inputs {
            all.rows += input.rows;
            all.footers += input.footer_bytes;
            all.keys.open += input.keys.open;
            all.keys.lean += input.keys.lean;
            if job.ordered {
                all.key_batches.push((input.rows, input.key_batch.clone()));
            }
            all.opening = all.opening.max(input.keys.opening);
            all.columns.resize(all.columns.len().max(input.columns.len()), OpenCost::default());
            for (total, column) in all.columns.iter_mut().zip(&input.columns) {
                if job.ordered {
                    total.open += column.open;
                    total.lean += column.lean;
                } else {
                    total.open = total.open.max(column.open);
                    total.lean = total.lean.max(column.lean);
                }
                all.opening = all.opening.max(column.opening);
            }
        }
        all
    }
}

/// The first layout that fits, best first.
fn best(job: &JobDemand, all: &Totals, budget: u64, threads: usize) -> Option<Admission> {
    let full = full_window(job, all);
    let windows = std::iter::successors(Some(full), |rows| {
        (*rows > LEAST_WINDOW_ROWS).then(|| (rows / 2).max(LEAST_WINDOW_ROWS))
    });
    let windows: Vec<u64> = windows.collect();
    let layouts = |rows: u64| {
        let many = threads.max(1);
        let layout = move |threads, keep_open, lean, reopen_keys| {
            layout(job, all, Layout { threads, rows, keep_open, lean, reopen_keys })
        };
        [
            layout(many, true, false, false),
            // A reader that is opened anew reads its dictionary again.
            layout(many, true, true, false),
            layout(many, false, false, false),
            layout(many, false, true, false),
            layout(1, false, false, false),
            layout(1, false, true, false),
            layout(many, false, true, true),
            layout(1, false, true, true),
        ]
    };
    windows.into_iter().flat_map(layouts).find(|admission| admission.needed_bytes <= budget)
}

fn leanest(job: &JobDemand, all: &Totals) -> Admission {
    let rows = full_window(job, all).min(LEAST_WINDOW_ROWS);
    layout(job, all, Layout { threads: 1, rows, keep_open: false, lean: true, reopen_keys: true })
}

fn full_window(job: &JobDemand, all: &Totals) -> u64 {
    let by_bytes = job.row_group_bytes / job.encoded_row_bytes.max(1);
    by_bytes.min(job.max_row_group_rows).min(all.rows).max(1)
}

#[derive(Debug, Clone, Copy)]
struct Layout {
    threads: usize,
    rows: u64,
    keep_open: bool,
    lean: bool,
    reopen_keys: bool,
}

/// The formula.
fn layout(job: &JobDemand, all: &Totals, layout: Layout) -> Admission {
    let cost = |cost: &OpenCost| if layout.lean { cost.lean } else { cost.open };
    let mut columns: Vec<u64> = all.columns.iter().map(cost).collect();
    columns.sort_unstable_by(|a, b| b.cmp(a));
    let in_work = if layout.keep_open { columns.len() } else { layout.threads };
    let readers: u64 = columns.iter().take(in_work).sum();
    // Batches are larger where each costs an opening.
    let key_rows = if layout.reopen_keys { job.key_rows * 4 } else { job.key_rows };
    let key_readers = if layout.reopen_keys || !job.ordered { 0 } else { cost(&all.keys) };
    let read_bytes = if layout.lean { job.read_bytes.min(LEAN_READ_BYTES) } else { job.read_bytes };
    let batches = all.key_batches.iter().map(|(rows, batch)| batch.bytes(key_rows.min(*rows), read_bytes as u64));
    let keys = key_readers + batches.sum::<u64>();
    let threads = layout.threads as u64;
    let opening = all.opening * threads;
    let gather = threads * (2 * job.chunk_bytes).max(layout.rows * job.gathered_row_bytes);
    let encoded_bytes = layout.rows * job.encoded_row_bytes.max(1) * 3 / 2 + ENCODED_SLACK;
    let encoders = threads * job.encoder_bytes + encoded_bytes;
    // The keys of the next window are merged while this one is moved.
    let windows = if threads > 1 { 2 } else { 1 };
    let runs = if job.ordered { windows * window_runs(layout.rows) * RUN_BYTES } else { 0 };
    let proof = layout.rows * (1 + CONSUMED_PER_ROW) * STATE_BYTES;
    let under_way = if job.far { layout.rows * job.encoded_row_bytes.max(1) } else { 0 };
    let reading = readers + keys + opening + under_way;
    let needed_bytes = BASE_BYTES + job.upload_bytes + all.footers + reading + gather + encoders + runs + proof;
    Admission {
        threads: layout.threads,
        window_rows: layout.rows,
        keep_open: layout.keep_open,
        reopen_keys: layout.reopen_keys,
        key_rows,
        read_bytes,
        ahead_bytes: if layout.lean { job.ahead_bytes.min(LEAN_AHEAD_BYTES) } else { job.ahead_bytes },
        encoded_bytes,
        needed_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MB: u64 = 1 << 20;

    fn job() -> JobDemand {
        JobDemand {
            ordered: true,
            upload_bytes: 16 * MB,
            row_group_bytes: 32 * MB,
            max_row_group_rows: 1 << 20,
            encoded_row_bytes: 32,
            encoder_bytes: 4 * MB,
            gathered_row_bytes: 20,
            chunk_bytes: 4 * MB,
            key_rows: 8192,
            read_bytes: 1 << 20,
            ahead_bytes: 256 << 10,
            far: false,
        }
    }

    /// A file of 20 MB as PyIceberg writes it: one row group, dictionaries of 2 MB, no page index.
    fn input(columns: usize) -> InputDemand {
        let column = OpenCost { open: 5 * MB, lean: 4 * MB, opening: 4 * MB };
        InputDemand {
            rows: 600_000,
            footer_bytes: 32 << 10,
            columns: vec![column; columns],
            keys: OpenCost { open: 10 * MB, lean: 8 * MB, opening: 4 * MB },
            key_batch: KeyBatchDemand { row_bytes: 24, value_bytes: vec![20, 8] },
        }
    }

    #[test]
    fn plenty_of_memory_keeps_every_reader_open() {
        let admission = admit(&job(), &vec![input(13); 4], 4096 * MB, 2).unwrap();
        assert!(admission.keep_open && !admission.reopen_keys);
        assert_eq!((admission.threads, admission.window_rows), (2, 1 << 20));
        assert_eq!(admission.read_bytes, 1 << 20);
    }

    #[test]
    fn the_files_of_the_memory_line_fit_in_360_mb_at_once() {
        let admission = admit(&job(), &vec![input(13); 24], 360 * MB, 2).unwrap();
        assert!(!admission.keep_open);
        assert!(admission.needed_bytes <= 360 * MB, "{admission:?}");
    }

    #[test]
    fn keys_count_as_far_as_a_batch_of_them_goes() {
        let batch = KeyBatchDemand { row_bytes: 24, value_bytes: vec![1000, 8] };
        assert_eq!(batch.bytes(10, 1 << 20), 10 * (24 + 2 * 1008), "all of them");
        assert_eq!(batch.bytes(8192, 1 << 20), 8192 * (24 + 2 * 8) + (2 << 20), "texts end the batch at 1 MB");
        let huge = KeyBatchDemand { row_bytes: 24, value_bytes: vec![10 * MB] };
        assert_eq!(huge.bytes(3, 1 << 20), 3 * 24 + 20 * MB, "one row at least");

        // 24 files of 100 rows whose keys are texts of 20 KB.
        let long = InputDemand {
            rows: 100,
            key_batch: KeyBatchDemand { row_bytes: 24, value_bytes: vec![20_000] },
            ..input(3)
        };
        assert!(admit(&job(), &vec![long; 24], 512 * MB, 2).is_ok());
    }

    #[test]
    fn what_is_under_way_is_admitted() {
        let near = admit(&job(), &vec![input(13); 4], 4096 * MB, 2).unwrap();
        let far = admit(&JobDemand { far: true, ..job() }, &vec![input(13); 4], 4096 * MB, 2).unwrap();
        assert_eq!(far.needed_bytes - near.needed_bytes, 32 * MB, "a window as it is encoded");
    }

    #[test]
    fn what_does_not_fit_says_how_much_and_how_many_would() {
        let refusal = admit(&job(), &vec![input(13); 96], 360 * MB, 2).unwrap_err();
        assert!(refusal.needed_bytes > 360 * MB);
        assert!((24..96).contains(&refusal.fan_in), "{refusal:?}");
        assert!(admit(&job(), &vec![input(13); refusal.fan_in], 360 * MB, 2).is_ok());
        assert_eq!(admit(&job(), &vec![input(13); 96], MB, 2).unwrap_err().fan_in, 0);
    }

    #[test]
    fn without_an_order_the_number_of_inputs_costs_only_their_footers() {
        let concat = JobDemand { ordered: false, ..job() };
        let few = admit(&concat, &vec![input(13); 2], 360 * MB, 1).unwrap();
        let many = admit(&concat, &vec![input(13); 2000], 360 * MB, 1).unwrap();
        assert_eq!(many.needed_bytes - few.needed_bytes, 1998 * (32 << 10));
    }

    #[test]
    fn parts_are_balanced_and_in_order() {
        let parts: Vec<_> = balanced(10, 4).collect();
        assert_eq!(parts, [0..2, 2..5, 5..7, 7..10]);
        assert_eq!(balanced(0, 3).flatten().count(), 0);
    }

    proptest! {
        #[test]
        fn what_is_admitted_fits_and_more_memory_never_refuses(inputs in 1..200usize, columns in 1..40usize, budget in 50..2000u64, threads in 1..4usize) {
            let inputs = vec![input(columns); inputs];
            match admit(&job(), &inputs, budget * MB, threads) {
                Ok(admission) => {
                    prop_assert!(admission.needed_bytes <= budget * MB);
                    prop_assert!(admission.threads >= 1 && admission.threads <= threads);
                    prop_assert!(admission.window_rows >= 1 && admission.window_rows <= 1 << 20);
                    prop_assert!(admit(&job(), &inputs, 2 * budget * MB, threads).is_ok());
                    prop_assert!(admit(&job(), &inputs[1..], budget * MB, threads).is_ok());
                }
                Err(refusal) => {
                    prop_assert!(refusal.needed_bytes > budget * MB);
                    prop_assert!(admit(&job(), &inputs, refusal.needed_bytes, threads).is_ok());
                    prop_assert!(refusal.fan_in < inputs.len());
                    if refusal.fan_in > 1 {
                        prop_assert!(admit(&job(), &inputs[..refusal.fan_in], budget * MB, threads).is_ok());
                    }
                }
            }
        }
    }
}

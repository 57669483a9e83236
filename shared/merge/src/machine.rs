//! The merge as a state machine: batches of keys in, windows of runs out.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use crate::check::SortCheck;
use crate::fault::MergeFault;
use crate::heap::InputHeap;
use crate::order::{KeyBatch, compare, compare_age, gallop, same_key};
use crate::stretch::{OpenStretch, Stretches};
use crate::window::{RowRef, Step, Window, WindowLimit};

/// A k-way merge of inputs in row order.
///
/// Call [`Merge::advance`] again and again: on [`Step::Need`] give the input's next batch with [`Merge::push`] (or [`Merge::end`]), on
/// [`Step::Window`] move the columns. Between windows the merge holds one batch of keys an input, and one more at most.
///
/// With dedup a row is decided only when the next key is seen. Until then the best row of the key is held back; it may have to be
/// carried over the end of a window ([`Window::carried_out`]), so that a key with millions of rows needs no more memory than another.
#[derive(Debug)]
pub struct Merge {
    dedup: bool,
    inputs: Vec<Input>,
    /// Inputs that have a row, smallest first; built once every input has shown its first.
    heap: Option<InputHeap>,
    window: Window,
    /// Best row so far of the key at hand, with dedup.
    pending: Option<Held>,
    last_out: Option<Held>,
    window_first_key: Option<Vec<u8>>,
    stretches: Stretches,
    /// The stretch that the rows going out now belong to.
    open: Option<OpenStretch>,
    /// A window that goes out next.
    ready: Option<Window>,
    finished: bool,
}

#[derive(Debug)]
struct Input {
    check: SortCheck,
    batch: Option<Arc<KeyBatch>>,
    /// Rows of the batch that repeat the key of the row before, with dedup.
    repeats: Vec<u32>,
    /// Next row within the batch.
    at: usize,
    ended: bool,
}

/// A row that is remembered together with the batch that holds its key.
#[derive(Debug, Clone)]
struct Held {
    input: usize,
    batch: Arc<KeyBatch>,
    at: usize,
}

impl Held {
    fn row(&self) -> u64 {
        self.batch.first_row() + self.at as u64
    }

    fn reference(&self) -> RowRef {
        RowRef { input: self.input as u32, row: self.row() }
    }
}

impl Merge {
    /// A merge of `inputs` inputs; `dedup` as [`crate::KeyOrder::dedup`].
    pub fn new(dedup: bool, inputs: usize) -> Merge {
        let new_input = |input| Input {
            check: SortCheck::new(input, dedup),
            batch: None,
            repeats: Vec::new(),
            at: 0,
            ended: false,
        };
        Merge {
            dedup,
            inputs: (0..inputs).map(new_input).collect(),
            heap: None,
            window: Window::starting_at(std::iter::repeat_n(0, inputs), None),
            pending: None,
            last_out: None,
            window_first_key: None,
            stretches: Stretches::default(),
            open: None,
            ready: None,
            finished: false,
        }
    }

    /// Rows of the inputs (one list an input, ascending) that are wanted in one piece. Where the merge finds nothing to come between the
    /// rows of such a stretch, and drops none of them, they are a window of their own ([`Window::whole`]), however many they are. Where it
    /// does, the window that they are in may have as many rows more than its limit; [`Window::split`] makes it smaller.
    pub fn with_stretches(mut self, stretches: Vec<Vec<Range<u64>>>) -> Merge {
        self.stretches = Stretches::new(stretches);
        self
    }

    /// Rows of the input that came in so far.
    pub fn rows_read(&self, input: usize) -> u64 {
        self.inputs[input].check.rows()
    }

    /// Ends the merge and gives back what is known of each input's order, to go on checking without merging.
    pub fn into_checks(self) -> Vec<SortCheck> {
        self.inputs.into_iter().map(|input| input.check).collect()
    }

    /// Bytes of keys held.
    pub fn memory_size(&self) -> usize {
        let batches = self.inputs.iter().filter_map(|input| input.batch.as_ref()).map(|batch| batch.memory_size());
        batches.sum::<usize>() + self.pending.as_ref().map_or(0, |held| held.batch.memory_size())
    }

    /// Gives the next batch of an input. An empty batch is ignored.
    ///
    /// # Errors
    /// [`MergeFault::Unsorted`] when a row comes before the one in front of it; [`MergeFault::Protocol`] when the batch was not asked for
    /// or does not continue the input.
    pub fn push(&mut self, input: usize, batch: KeyBatch) -> Result<(), MergeFault> {
        let state = self.waiting(input)?;
        if batch.rows() == 0 {
            return Ok(());
        }
        let batch = Arc::new(batch);
        state.repeats = state.check.take(&batch)?;
        state.batch = Some(batch);
        state.at = 0;
        if let Some(mut heap) = self.heap.take() {
            heap.settle_first(|a, b| self.goes_first(a, b));
            self.heap = Some(heap);
        }
        Ok(())
    }

    /// Says that an input has no more rows.
    ///
    /// # Errors
    /// [`MergeFault::Protocol`] when the input was not asked for.
    pub fn end(&mut self, input: usize) -> Result<(), MergeFault> {
        self.waiting(input)?.ended = true;
        if let Some(mut heap) = self.heap.take() {
            heap.remove_first(|a, b| self.goes_first(a, b));
            self.heap = Some(heap);
        }
        Ok(())
    }

    fn waiting(&mut self, input: usize) -> Result<&mut Input, MergeFault> {
        let at_root = self.heap.as_ref().is_none_or(|heap| heap.first() == Some(input));
        match self.inputs.get_mut(input) {
            Some(state) if at_root && state.batch.is_none() && !state.ended => Ok(state),
            _ => Err(MergeFault::Protocol(format!("input {input} was not asked for"))),
        }
    }

    fn goes_first(&self, left: usize, right: usize) -> bool {
        match (&self.inputs[left].batch, &self.inputs[right].batch) {
            (Some(batch), Some(other)) => {
                let order = compare(batch, self.inputs[left].at, other, self.inputs[right].at);
                order.then_with(|| left.cmp(&right)) == Ordering::Less
            }
            // An input that waits stays where it is: it is asked for before anything else happens.
            (None, _) => true,
            (_, None) => false,
        }
    }

    /// Goes on until a batch is needed or a window is full. `limit` may change from window to window.
    ///
    /// # Errors
    /// [`MergeFault::OrderBroken`] when a row would be emitted out of order: the last line of defence, it costs one comparison a run.
    pub fn advance(&mut self, limit: &WindowLimit) -> Result<Step, MergeFault> {
        if let Some(window) = self.ready.take() {
            return Ok(Step::Window(window));
        }
        if self.finished {
            return Ok(Step::Finished);
        }
        if self.heap.is_none() {
            if let Some(input) = self.inputs.iter().position(|input| input.batch.is_none() && !input.ended) {
                return Ok(Step::Need(input));
            }
            let with_rows = (0..self.inputs.len()).filter(|&input| !self.inputs[input].ended).collect();
            self.heap = Some(InputHeap::new(with_rows, |a, b| self.goes_first(a, b)));
        }
        let Some(mut heap) = self.heap.take() else { return Ok(Step::Finished) };
        let step = self.advance_over(&mut heap, limit);
        self.heap = Some(heap);
        step
    }

    fn advance_over(&mut self, heap: &mut InputHeap, limit: &WindowLimit) -> Result<Step, MergeFault> {
        let mut consumed = self.window.consumed();
        loop {
            let Some(input) = heap.first() else { return self.wind_up(limit) };
            let Some(batch) = self.inputs[input].batch.clone() else { return Ok(Step::Need(input)) };
            let at = self.inputs[input].at;
            if let Some(window) = self.settle_stretch(Some((input, &batch, at)))? {
                return Ok(Step::Window(window));
            }
            let full = self.window.rows >= limit.rows.max(1)
                || consumed >= limit.consumed.max(1)
                || self.window.runs.len() >= limit.runs.max(1);
            if full && self.open.is_none() {
                return Ok(Step::Window(self.close_window()));
            }
            let border = self.begin_stretch(input, &batch, at)?;
            let mut end = match heap.second(|a, b| self.goes_first(a, b)) {
                Some(second) => match &self.inputs[second].batch {
                    Some(bound) => gallop(&batch, at, bound, self.inputs[second].at),
                    None => return Ok(Step::Need(second)),
                },
                None => batch.rows(),
            };
            // A consumed row emits one row at most, so these bounds keep the limits exactly; a stretch is not limited.
            let room = match (&self.open, border) {
                (Some(_), Some(border)) => border - (batch.first_row() + at as u64),
                (_, border) => {
                    let rows = limit.rows.max(1).saturating_sub(self.window.rows);
                    let room = rows.min(limit.consumed.max(1).saturating_sub(consumed)).max(1);
                    border.map_or(room, |border| room.min(border - (batch.first_row() + at as u64)))
                }
            };
            end = end.min(at.saturating_add(usize::try_from(room).unwrap_or(usize::MAX)));
            if self.dedup {
                self.take_dedup(input, &batch, at, end)?;
            } else {
                self.emit(input, &batch, at, end)?;
            }
            consumed += (end - at) as u64;
            let state = &mut self.inputs[input];
            self.window.ranges[input].end = batch.first_row() + end as u64;
            state.at = end;
            if end == batch.rows() {
                state.batch = None;
            } else {
                heap.settle_first(|a, b| self.goes_first(a, b));
            }
        }
    }

    /// Begins a stretch where one starts with row `at` of the batch. Returns the row before which the rows to come must stop: the end of
    /// the stretch, or the beginning of the next one.
    fn begin_stretch(&mut self, input: usize, batch: &Arc<KeyBatch>, at: usize) -> Result<Option<u64>, MergeFault> {
        if let Some(open) = &self.open {
            return Ok(Some(open.rows.end));
        }
        let row = batch.first_row() + at as u64;
        let Some(rows) = self.stretches.next(input, row) else { return Ok(None) };
        if rows.start > row {
            return Ok(Some(rows.start));
        }
        if self.pending.as_ref().is_some_and(|held| same_key(&held.batch, held.at, batch, at)) {
            // Either this row or the one that is held back will be dropped; the stretch is passed over.
            let next = self.stretches.next(input, row + 1);
            return Ok(next.map(|rows| rows.start));
        }
        if let Some(held) = self.pending.take() {
            self.emit(held.input, &held.batch, held.at, held.at + 1)?;
        }
        let last_key = self.last_out.as_ref().map(|held| held.batch.key_bytes(held.at).to_vec()).unwrap_or_default();
        let first_key = batch.key_bytes(at).to_vec();
        let end = rows.end;
        self.open = Some(OpenStretch::begin(input, rows, first_key, &self.window, last_key));
        Ok(Some(end))
    }

    /// Looks at the stretch that is open before the row `next` goes out; None: there are no more rows. Gives the window before the stretch,
    /// or the stretch itself, when all its rows went out with nothing between them.
    fn settle_stretch(&mut self, next: Option<(usize, &Arc<KeyBatch>, usize)>) -> Result<Option<Window>, MergeFault> {
        let Some(open) = self.open.take() else { return Ok(None) };
        let broken = open.lost_rows(&self.window);
        if broken || !open.is_consumed(&self.window) {
            let goes_on = !broken && next.is_some_and(|(input, ..)| input == open.input);
            self.open = goes_on.then_some(open);
            return Ok(None);
        }
        if let Some(held) = self.pending.take() {
            if next.is_some_and(|(_, batch, at)| same_key(&held.batch, held.at, batch, at)) {
                // Its last row has a rival.
                self.pending = Some(held);
                return Ok(None);
            }
            self.emit(held.input, &held.batch, held.at, held.at + 1)?;
        }
        let last_key = self.last_out.as_ref().map(|held| held.batch.key_bytes(held.at).to_vec()).unwrap_or_default();
        let first_key = self.window_first_key.clone();
        let Some((before, whole)) = open.cut(&mut self.window, first_key, last_key) else { return Ok(None) };
        self.window_first_key = None;
        Ok(Some(match before {
            Some(before) => {
                self.ready = Some(whole);
                before
            }
            None => whole,
        }))
    }

    /// All inputs have ended: what is held back is decided, the last window goes out.
    fn wind_up(&mut self, limit: &WindowLimit) -> Result<Step, MergeFault> {
        if let Some(window) = self.settle_stretch(None)? {
            return Ok(Step::Window(window));
        }
        if self.pending.is_some() && self.window.rows >= limit.rows.max(1) {
            return Ok(Step::Window(self.close_window()));
        }
        if let Some(held) = self.pending.take() {
            self.emit(held.input, &held.batch, held.at, held.at + 1)?;
        }
        self.finished = true;
        if self.window.consumed() == 0 && self.window.rows == 0 {
            return Ok(Step::Finished);
        }
        Ok(Step::Window(self.close_window()))
    }

    /// Consumes rows `at..end`, keeping one row of each key.
    fn take_dedup(&mut self, input: usize, batch: &Arc<KeyBatch>, at: usize, end: usize) -> Result<(), MergeFault> {
        let mut at = at;
        // Only the first row can have the key that is pending from elsewhere; after it the repeats of this batch say all.
        match self.pending.take() {
            Some(held) if same_key(&held.batch, held.at, batch, at) => {
                self.pending = Some(self.newest(held, input, batch, at))
            }
            held => {
                if let Some(held) = held {
                    self.emit(held.input, &held.batch, held.at, held.at + 1)?;
                }
                self.pending = Some(Held { input, batch: Arc::clone(batch), at });
            }
        }
        at += 1;
        let mut next_repeat = self.inputs[input].repeats.partition_point(|&row| (row as usize) < at);
        while at < end {
            let Some(held) = self.pending.take() else { break };
            let repeat = self.inputs[input].repeats.get(next_repeat).map_or(end, |&row| (row as usize).min(end));
            if repeat == at {
                self.pending = Some(self.newest(held, input, batch, at));
                next_repeat += 1;
                at += 1;
            } else {
                // Rows at..repeat start a key each: all but the last are decided.
                self.emit(held.input, &held.batch, held.at, held.at + 1)?;
                if repeat - 1 > at {
                    self.emit(input, batch, at, repeat - 1)?;
                }
                self.pending = Some(Held { input, batch: Arc::clone(batch), at: repeat - 1 });
                at = repeat;
            }
        }
        Ok(())
    }

    /// The newer of two rows of one key; the other is dropped.
    fn newest(&mut self, held: Held, input: usize, batch: &Arc<KeyBatch>, at: usize) -> Held {
        self.window.dropped += 1;
        let order = compare_age(&held.batch, held.at, batch, at).then_with(|| held.input.cmp(&input));
        if order == Ordering::Greater { held } else { Held { input, batch: Arc::clone(batch), at } }
    }

    fn emit(&mut self, input: usize, batch: &Arc<KeyBatch>, at: usize, end: usize) -> Result<(), MergeFault> {
        if let Some(last) = &self.last_out {
            let in_order = if self.dedup {
                last.batch.key_bytes(last.at) < batch.key_bytes(at)
            } else {
                compare(&last.batch, last.at, batch, at) != Ordering::Greater
            };
            if !in_order {
                return Err(MergeFault::OrderBroken { input, row: batch.first_row() + at as u64 });
            }
        }
        if self.window_first_key.is_none() {
            self.window_first_key = Some(batch.key_bytes(at).to_vec());
        }
        self.last_out = Some(Held { input, batch: Arc::clone(batch), at: end - 1 });
        self.window.push(input as u32, batch.first_row() + at as u64, (end - at) as u64);
        Ok(())
    }

    fn close_window(&mut self) -> Window {
        let carried = self.pending.as_ref().map(Held::reference);
        let next = Window::starting_at(self.window.ranges.iter().map(|range| range.end), carried);
        let mut window = std::mem::replace(&mut self.window, next);
        window.carried_out = carried;
        if let Some(first_key) = self.window_first_key.take() {
            window.first_key = first_key;
            window.last_key =
                self.last_out.as_ref().map(|held| held.batch.key_bytes(held.at).to_vec()).unwrap_or_default();
        }
        window
    }
}

//! A binary heap of input numbers whose order lies outside of it.

/// The smallest input is at the root. `before(a, b)` says whether input `a` goes first; it is asked anew on every change.
#[derive(Debug, Default)]
pub(crate) struct InputHeap {
    items: Vec<usize>,
}

impl InputHeap {
    pub(crate) fn new(items: Vec<usize>, before: impl Fn(usize, usize) -> bool) -> InputHeap {
        let mut heap = InputHeap { items };
        for at in (0..heap.items.len() / 2).rev() {
            heap.sift_down(at, &before);
        }
        heap
    }

    pub(crate) fn first(&self) -> Option<usize> {
        self.items.first().copied()
    }

    /// The input that goes second.
    pub(crate) fn second(&self, before: impl Fn(usize, usize) -> bool) -> Option<usize> {
        match (self.items.get(1), self.items.get(2)) {
            (Some(&left), Some(&right)) => Some(if before(right, left) { right } else { left }),
            (left, _) => left.copied(),
        }
    }

    /// Puts the root in its place after it moved on.
    pub(crate) fn settle_first(&mut self, before: impl Fn(usize, usize) -> bool) {
        self.sift_down(0, &before);
    }

    pub(crate) fn remove_first(&mut self, before: impl Fn(usize, usize) -> bool) {
        if !self.items.is_empty() {
            self.items.swap_remove(0);
            self.sift_down(0, &before);
        }
    }

    fn sift_down(&mut self, mut at: usize, before: &impl Fn(usize, usize) -> bool) {
        loop {
            let left = 2 * at + 1;
            if left >= self.items.len() {
                return;
            }
            let right = left + 1;
            let child =
                if right < self.items.len() && before(self.items[right], self.items[left]) { right } else { left };
            if !before(self.items[child], self.items[at]) {
                return;
            }
            self.items.swap(at, child);
            at = child;
        }
    }
}

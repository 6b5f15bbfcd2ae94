//! Tests of faults whose page has changed its state before they are served.

use crate::fault::serve::FaultKind;
use crate::page::pages::Where;
use crate::{Options, Pager, Region, SwapArea, PAGE};

fn exact() -> (Pager, Region) {
    // With a swap area, pages are first mapped for reading.
    let swap = Some(SwapArea { bytes: None, collector: "greedy".into(), victims: 1 });
    let options = Options { max_memory: 1 << 26, swap, read_ahead: 0, ..Options::new(64 * PAGE as u64) };
    let pager = Pager::start(options).unwrap();
    let region = pager.anonymous(PAGE).unwrap();
    (pager, region)
}

/// Loads other pages until the region's one page is evicted.
fn push_out(pager: &Pager, region: &Region) {
    let mut other = pager.anonymous(256 * PAGE).unwrap();
    other.as_mut_slice().iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
    assert_eq!(pager.inner.managed.memory().pages.get(page_of(pager, region)), Where::Out);
}

fn page_of(pager: &Pager, region: &Region) -> usize {
    (region.as_ptr() as usize - pager.span().start) / PAGE
}

fn first_byte(region: &Region) -> u8 {
    // SAFETY: the region lives; read anew each time.
    unsafe { region.as_ptr().read_volatile() }
}

#[test]
fn a_stale_fault_does_not_map_zeros_for_a_page_that_has_left() {
    let (pager, mut region) = exact();
    region.as_mut_slice()[0] = 7;
    push_out(&pager, &region);
    pager.inner.managed.look_again(page_of(&pager, &region), Where::Dirty, FaultKind::Missing, false);
    assert_eq!(first_byte(&region), 7);
}

#[test]
fn a_stale_fault_does_not_allow_unseen_writes_to_a_page_that_has_come_back() {
    let (pager, mut region) = exact();
    region.as_mut_slice()[0] = 7;
    push_out(&pager, &region);
    assert_eq!(first_byte(&region), 7);
    let page = page_of(&pager, &region);
    assert_eq!(pager.inner.managed.memory().pages.get(page), Where::Clean);
    pager.inner.managed.look_again(page, Where::Dirty, FaultKind::Protected, false);
    region.as_mut_slice()[0] = 8;
    push_out(&pager, &region);
    assert_eq!(first_byte(&region), 8);
}

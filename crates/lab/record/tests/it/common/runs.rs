//! The page level once more, slow and simple: exact references collapse to runs on pages.

use coldframe_store::{Kind, Reference};

/// One task's references, in order, as rows of the page level.
pub fn runs(page: u64, references: &[Reference]) -> Vec<Reference> {
    let mut rows: Vec<Reference> = Vec::new();
    // The places of the last rows of fetches and of data.
    let mut open = [None, None];
    for one in references {
        let last = one.address + u64::from(one.size.max(1)) - 1;
        for address in (one.address / page..=last / page).map(|number| number * page) {
            let open = &mut open[usize::from(one.kind == Kind::Fetch)];
            match open.map(|at: usize| &mut rows[at]) {
                Some(row) if row.address == address && (row.kind == Kind::Write || one.kind != Kind::Write) => {
                    row.count += 1;
                }
                _ => {
                    *open = Some(rows.len());
                    rows.push(Reference::new(address, page as u32, one.kind));
                }
            }
        }
    }
    rows
}

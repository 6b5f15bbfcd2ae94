//! The claims of the abstract, on the mix of applications that the paper also runs.

use super::*;

/// "Our technique can reduce more than 50% energy consumption compared to DRAM backed swapping", and section V.B:
/// direct read removes more than half of the swap-ins (65.09 % of mix1's at 128 MB).
#[test]
fn half_of_the_energy_and_of_the_swap_ins_go() {
    let p = workload::shipped();
    let input = input(&p, "mix1").unwrap();
    let run = |i: usize| input.run(&BACKINGS[i], megabytes(p.machine.ram_mb), Bytes(128 << 20), &p.machine).unwrap();
    let [dram, nvm, direct] = [DRAM, NVM, NVM_DR].map(run);
    let less = 100.0 * (1.0 - joules(&direct) / joules(&dram));
    assert!(less > 50.0, "{less} % less energy than with DRAM");
    let saved = 100.0 * (1.0 - swap_ins(&direct) / swap_ins(&nvm));
    assert!((saved - 65.09).abs() < 10.0, "{saved} % of the swap-ins");
}

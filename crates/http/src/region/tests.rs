//! Reads and writes at the bounds of a region, in memory of the test itself. Beyond the bounds, reads
//! return zeros and writes do nothing.

use super::*;

#[test]
fn accesses_outside_the_region_have_no_effect() {
    let mut memory = vec![0_u8; 16];
    // SAFETY: the memory outlives the region and is used by nobody else meanwhile.
    let mut region = unsafe { Region::new(memory.as_mut_ptr(), memory.len()) };
    region.put_all(1, [7, 8, 9]);
    region.put_all(2, [1, 1, 1]);
    region.put(4, 1);
    assert_eq!(region.words::<4>(0), [0, 7, 8, 9]);
    assert_eq!((region.word(3), region.word(4), region.words::<2>(3)), (9, 0, [0, 0]));
    region.all_mut()[4] = 5;
    assert_eq!((region.word(1), region.len(), region.is_empty()), (5, 16, false));
}

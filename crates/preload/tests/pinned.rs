//! Memory whose frames the kernel holds while it fills them, past the page table.

mod common;
#[path = "common/fuse.rs"]
mod fuse;

use std::time::Duration;

use coldframe_live::{Options, Tier, Wait};
use coldframe_toolbox::{have, GCC};
use common::{compile, paged};

/// So little that the pages of a buffer leave it while a read is under way.
const RAM: u64 = 512 << 10;

/// One thread reads a file into memory, while another one touches more memory than there is RAM.
const READER: &str = r#"
enum { P = 4096, READ = 8, BUFFERS = 4, OTHER = 2 << 20 };
static char *other; static volatile int done;
static void *press(void *none) {
    unsigned long long state = 1;
    while (!done) { state = state * 6364136223846793005ull + 1442695040888963407ull; other[(state >> 33) % (OTHER / P) * P]++; }
    return NULL;
}
int main(int argc, char **argv) {
    int file = open(argv[1], O_RDONLY), wrong = 0; CHECK(file >= 0);
    other = malloc(OTHER); memset(other, 1, OTHER);
    char *all = malloc(BUFFERS * READ * P); memset(all, 0xee, BUFFERS * READ * P);
    pthread_t thread; CHECK(pthread_create(&thread, NULL, press, NULL) == 0);
    for (int i = 0; i < atoi(argv[2]); i++) {
        char *buffer = all + i % BUFFERS * READ * P; long at = i * (long)READ * P;
        memset(buffer, 0xee, READ * P);
        CHECK(pread(file, buffer, READ * P, at) == READ * P);
        for (int page = 0; page < READ; page++) {
            int bad = 0;
            for (int b = 0; b < P; b += 8) bad |= *(unsigned long *)(buffer + page * P + b) != (at + page * P + b) * 0x9e3779b97f4a7c15ul;
            wrong += bad;
        }
    }
    done = 1; pthread_join(thread, NULL);
    printf("%d pages of %d are wrong\n", wrong, atoi(argv[2]) * READ);
    return wrong != 0;
}"#;

/// Reads so many times, each so long, with each setting.
fn reads(direct: bool, wait: Duration, count: u32) {
    if !have(&[GCC]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (program, file) = (compile(dir.path(), "reader", READER, &[]), dir.path().join("file"));
    if !fuse::serve(&file, direct, wait) {
        return;
    }
    for tier in [Tier::None, Tier::Lz4] {
        let Some(mut command) = paged(&program, RAM) else { return };
        let mut options = Options::new(RAM);
        (options.max_memory, options.wait, options.tier) = (Options::MAX_MEMORY, Wait::Brief, tier);
        options.backing = "/var/tmp".into();
        let output = common::run(command.env("COLDFRAME_OPTIONS", options.encode()).arg(&file).arg(count.to_string()));
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{tier:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_file_that_a_server_provides_is_read_by_way_of_the_page_cache() {
    reads(false, Duration::from_millis(5), 20);
}

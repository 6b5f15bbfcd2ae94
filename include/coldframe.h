/* coldframe: demand paging in the RAM you give. Made by `make header` from crates/capi; do not edit.

   Link with -lcoldframe. examples/c/sum.c shows the way. Threads may share handles. */

#ifndef COLDFRAME_H
#define COLDFRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * How a call went. The numbers are the exit codes of the `coldframe` command.
 */
typedef enum coldframe_status {
  /**
   * It did what it should.
   */
  COLDFRAME_STATUS_OK = 0,
  /**
   * An argument that cannot be: a null pointer, text that is not UTF-8, too little RAM, a range beyond the region.
   */
  COLDFRAME_STATUS_USAGE = 2,
  /**
   * This machine does not allow it; `coldframe doctor` says more.
   */
  COLDFRAME_STATUS_MACHINE = 4,
  /**
   * The swap file or a region's file cannot be used, or there is no room.
   */
  COLDFRAME_STATUS_BACKING = 5,
  /**
   * A mistake in coldframe itself. Nothing is promised about the handles of this call any more.
   */
  COLDFRAME_STATUS_BUG = 125,
} coldframe_status;

/**
 * A pager: one RAM budget over any number of regions. Any thread may use it, several at a time.
 */
typedef struct coldframe_pager coldframe_pager;

/**
 * A region: memory, aligned to a page, that may be larger than RAM. Any thread may touch it.
 *
 * A system call that is given a page which is not in RAM fails with EFAULT: pin the range first.
 */
typedef struct coldframe_region coldframe_region;

/**
 * What a pager is made from. Fill it by `coldframe_options_default`, then change what should be otherwise. A null pointer means the
 * default.
 */
typedef struct coldframe_options {
  /**
   * RAM for all regions together, in bytes; at least 256 KiB.
   */
  uint64_t ram;
  /**
   * The most bytes all regions together may have. Costs nothing until it is used.
   */
  uint64_t max_memory;
  /**
   * Folder for the swap file, which has no name and is gone with the pager; null: where temporary files go.
   */
  const char *backing;
  /**
   * Page replacement policy, as `coldframe policies` lists them, `pa-clock:budget=13` for instance; null: fitted to the device.
   */
  const char *policy;
  /**
   * Where a journal of the engine goes, for `coldframe replay`; null: nowhere.
   */
  const char *journal;
  /**
   * Keep pages encrypted and authenticated in the swap file, with a key that lives only in memory.
   */
  bool encrypt;
} coldframe_options;

/**
 * Bytes of a region.
 */
typedef struct coldframe_range {
  /**
   * First byte, from the region's base on.
   */
  size_t offset;
  /**
   * How many.
   */
  size_t len;
} coldframe_range;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * What went wrong in this thread's last call that failed; never null, empty if none has. It stays until this thread's next call
 * that fails.
 */
const char *coldframe_last_error(void);

/**
 * The defaults, for so many bytes of RAM.
 */
struct coldframe_options coldframe_options_default(uint64_t ram);

/**
 * Starts a pager. `*out` is null if that fails.
 *
 * Faults are handled by two threads of the pager.
 *
 * Contract:
 * `options` is null or points to options whose strings are null or C strings; `out` is null or can be written to.
 */
enum coldframe_status coldframe_start(const struct coldframe_options *options, struct coldframe_pager **out);

/**
 * Closes the handle; null is fine. The pager itself ends with the last of its regions.
 *
 * Contract:
 * `pager` is null or a handle that has not been closed, and nobody uses it any more.
 */
enum coldframe_status coldframe_close(struct coldframe_pager *pager);

/**
 * The statistics now, as one JSON object (the counters of `coldframe run --stats`); for `coldframe_string_free`. Null if that fails.
 *
 * Contract:
 * `pager` is null or a handle that has not been closed.
 */
char *coldframe_stats(const struct coldframe_pager *pager);

/**
 * Frees a string that coldframe has given; null is fine.
 *
 * Contract:
 * `text` is null or comes from `coldframe_stats` and has not been freed.
 */
void coldframe_string_free(char *text);

/**
 * Private memory, zero at first, backed by the pager's swap file. `*out` is null if that fails.
 *
 * Contract:
 * `pager` is null or a handle that has not been closed; `out` is null or can be written to.
 */
enum coldframe_status coldframe_region_anonymous(const struct coldframe_pager *pager,
                                                 size_t len,
                                                 struct coldframe_region **out);

/**
 * A file, as a shared mapping of it would be: what is written to the memory comes to the file when its page leaves RAM, when it is
 * flushed, and when the region is closed. The region is as long as the file. `*out` is null if that fails.
 *
 * Contract:
 * `pager` is null or a handle that has not been closed; `path` is null or a C string; `out` is null or can be written to.
 */
enum coldframe_status coldframe_region_file(const struct coldframe_pager *pager,
                                            const char *path,
                                            struct coldframe_region **out);

/**
 * The region's first byte; null for a null handle.
 *
 * Contract:
 * `region` is null or a handle that has not been closed.
 */
void *coldframe_region_base(const struct coldframe_region *region);

/**
 * The region's bytes; 0 for a null handle.
 *
 * Contract:
 * `region` is null or a handle that has not been closed.
 */
size_t coldframe_region_len(const struct coldframe_region *region);

/**
 * Brings every page of a file's region that was written to before the call to the file, durably. Of private memory there is nothing
 * to flush.
 *
 * Contract:
 * `region` is null or a handle that has not been closed.
 */
enum coldframe_status coldframe_flush(const struct coldframe_region *region);

/**
 * Loads a range and keeps it in RAM until `coldframe_unpin` of the same range. Nests.
 *
 * Contract:
 * `region` is null or a handle that has not been closed.
 */
enum coldframe_status coldframe_pin(const struct coldframe_region *region, size_t offset, size_t len);

/**
 * Undoes `coldframe_pin`.
 *
 * Contract:
 * `region` is null or a handle that has not been closed.
 */
enum coldframe_status coldframe_unpin(const struct coldframe_region *region, size_t offset, size_t len);

/**
 * Loads a range, many pages at a time, and waits for it. Of a range larger than RAM the end is there.
 *
 * Contract:
 * `region` is null or a handle that has not been closed.
 */
enum coldframe_status coldframe_prefault(const struct coldframe_region *region, size_t offset, size_t len);

/**
 * Loads scattered ranges with as few submissions as possible.
 *
 * Contract:
 * `region` is null or a handle that has not been closed; `ranges` is null or points to `count` ranges.
 */
enum coldframe_status coldframe_will_need(const struct coldframe_region *region,
                                          const struct coldframe_range *ranges,
                                          size_t count);

/**
 * Forgets the content of a range: it reads as zeros from now on, or as its file has it (what was written to a file's pages and not
 * flushed is lost).
 *
 * Contract:
 * `region` is null or a handle that has not been closed, and nobody holds the range's content for dear.
 */
enum coldframe_status coldframe_discard(const struct coldframe_region *region,
                                        size_t offset,
                                        size_t len);

/**
 * Closes the region; null is fine. Its memory must not be touched any more. A file's dirty pages are written before; if that fails, the
 * answer says so, and the region is closed all the same.
 *
 * Contract:
 * `region` is null or a handle that has not been closed, and nobody uses it or its memory any more.
 */
enum coldframe_status coldframe_region_close(struct coldframe_region *region);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* COLDFRAME_H */

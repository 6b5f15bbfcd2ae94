/* coldframe: demand paging in the RAM you give. Made by `make header` from crates/product/capi; do not edit.

   Link with -lcoldframe. examples/c/sum.c shows the way. Threads may share handles. */

#ifndef COLDFRAME_H
#define COLDFRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * The result of a call. The numbers are the exit codes of the `coldframe` command.
 */
typedef enum coldframe_status {
  /**
   * Success.
   */
  COLDFRAME_STATUS_OK = 0,
  /**
   * An argument is wrong: a null pointer, text that is not UTF-8, too little RAM, a range beyond the region.
   */
  COLDFRAME_STATUS_USAGE = 2,
  /**
   * This machine does not allow it; `coldframe doctor` gives the reason.
   */
  COLDFRAME_STATUS_MACHINE = 4,
  /**
   * The swap file cannot be used, or there is no room left.
   */
  COLDFRAME_STATUS_BACKING = 5,
  /**
   * A bug in coldframe. The handles of this call must not be used any more.
   */
  COLDFRAME_STATUS_BUG = 125,
} coldframe_status;

/**
 * A pager: one RAM budget for any number of regions. Several threads may use it at the same time.
 */
typedef struct coldframe_pager coldframe_pager;

/**
 * A region: memory, aligned to a page, that may be larger than RAM. Any thread may touch it.
 *
 * A system call that is given a page which is not in RAM fails with EFAULT: pin the range first.
 */
typedef struct coldframe_region coldframe_region;

/**
 * The options of a pager. Fill it by `coldframe_options_default`, then change what should differ. A null pointer
 * means the default.
 */
typedef struct coldframe_options {
  /**
   * RAM for all regions together, in bytes; at least 256 KiB.
   */
  uint64_t ram;
  /**
   * The most bytes that all regions together may have. Unused memory costs nothing.
   */
  uint64_t max_memory;
  /**
   * Folder for the swap file. The file has no name and is gone when the pager ends. Null: the folder of temporary
   * files.
   */
  const char *backing;
  /**
   * Page replacement policy, as `coldframe-lab policies` lists them, for example `pa-clock:budget=13`. Null: fitted
   * to the device.
   */
  const char *policy;
  /**
   * File for a journal of the engine, for `coldframe-lab replay`. Null: no journal.
   */
  const char *journal;
  /**
   * Keep pages encrypted and authenticated in the swap file, with a key that lives only in memory.
   */
  bool encrypt;
} coldframe_options;

/**
 * A range of bytes of a region.
 */
typedef struct coldframe_range {
  /**
   * First byte, counted from the region's base.
   */
  size_t offset;
  /**
   * Length in bytes.
   */
  size_t len;
} coldframe_range;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The message of this thread's last failed call. Never null; empty if no call has failed. It stays valid until this
 * thread's next failed call.
 */
const char *coldframe_last_error(void);

/**
 * The defaults, for `ram` bytes of RAM.
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
 * `pager` is null or a handle that has not been closed, and no thread uses it any more.
 */
enum coldframe_status coldframe_close(struct coldframe_pager *pager);

/**
 * The statistics now, as one JSON object (the counters of `coldframe run --stats`). Free it with
 * `coldframe_string_free`. Null on failure.
 *
 * Contract:
 * `pager` is null or a handle that has not been closed.
 */
char *coldframe_stats(const struct coldframe_pager *pager);

/**
 * Frees a string that coldframe has returned; null is fine.
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
 * The region's first byte; null for a null handle.
 *
 * Contract:
 * `region` is null or a handle that has not been closed.
 */
void *coldframe_region_base(const struct coldframe_region *region);

/**
 * The region's length in bytes; 0 for a null handle.
 *
 * Contract:
 * `region` is null or a handle that has not been closed.
 */
size_t coldframe_region_len(const struct coldframe_region *region);

/**
 * Loads a range and keeps it in RAM until `coldframe_unpin` of the same range. Pins nest.
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
 * Loads a range, many pages at a time, and waits until it is loaded. Of a range larger than RAM, only the end is
 * then in RAM.
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
 * Drops the content of a range. It reads as zeros from then on.
 *
 * Contract:
 * `region` is null or a handle that has not been closed, and the range's content is not needed any more.
 */
enum coldframe_status coldframe_discard(const struct coldframe_region *region, size_t offset, size_t len);

/**
 * Closes the region; null is fine. Its memory must not be touched any more.
 *
 * Contract:
 * `region` is null or a handle that has not been closed, and no thread uses it or its memory any more.
 */
enum coldframe_status coldframe_region_close(struct coldframe_region *region);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* COLDFRAME_H */

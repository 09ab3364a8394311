#pragma once

// How the C library's allocator deals with freed memory, for the whole process.

namespace troupe::runtime {

// Lets it keep up to 64 MiB of freed memory in each of its heaps, blocks of up to 32 MiB included.
// By default it soon gives them back to the system. Payloads come and go all the time, and fresh
// pages cost as much as a pass over them. For a program to call once at its start; without effect
// under a sanitizer's allocator.
void keep_freed_memory();

}  // namespace troupe::runtime

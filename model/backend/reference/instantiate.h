#pragma once

// Every operation of the reference backend is a template over float and double that lives in a
// source file; this makes both.

#define TROUPE_INSTANTIATE_RUN(Operation)                        \
  template void run<float>(const Operation&, const KernelCall&); \
  template void run<double>(const Operation&, const KernelCall&)

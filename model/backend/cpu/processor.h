#pragma once

// The kind of host that computes, in words: a part of the numerics class.

#include <string>
#include <string_view>

#include <dnnl.hpp>

namespace troupe::model::cpu {

// The brand string of CPUID, such as "AMD EPYC 7742 64-Core Processor". The kernel may show another
// name in /proc/cpuinfo, for example under a hypervisor.
std::string processor_name();

// The name in the bytes of a brand string, without the zeros and blanks that pad it; "unnamed
// processor" where there is none.
std::string name_in_brand(std::string_view brand);

// "avx512_core"; a number for one that this version of oneDNN's header does not name.
std::string isa_name(dnnl::cpu_isa isa);

}  // namespace troupe::model::cpu

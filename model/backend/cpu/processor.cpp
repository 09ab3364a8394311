#include "model/backend/cpu/processor.h"

#include <array>
#include <cstring>
#include <string_view>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace troupe::model::cpu {

std::string processor_name() {
  std::string name;
#if defined(__x86_64__)
  for (unsigned leaf = 0x80000002; leaf <= 0x80000004; ++leaf) {
    std::array<unsigned, 4> words{};
    if (__get_cpuid(leaf, &words[0], &words[1], &words[2], &words[3]) == 0) break;
    std::array<char, sizeof(words)> text{};
    std::memcpy(text.data(), words.data(), sizeof(words));
    name.append(text.data(), text.size());
  }
#endif
  // Padded with zeros behind and, by some makers, with blanks before or behind.
  name.resize(name.find_last_not_of(std::string_view("\0 ", 2)) + 1);
  name.erase(0, name.find_first_not_of(' '));
  return name.empty() ? "unnamed processor" : name;
}

std::string isa_name(dnnl::cpu_isa isa) {
  switch (isa) {
    case dnnl::cpu_isa::sse41:
      return "sse41";
    case dnnl::cpu_isa::avx:
      return "avx";
    case dnnl::cpu_isa::avx2:
      return "avx2";
    case dnnl::cpu_isa::avx2_vnni:
      return "avx2_vnni";
    case dnnl::cpu_isa::avx512_mic:
      return "avx512_mic";
    case dnnl::cpu_isa::avx512_mic_4ops:
      return "avx512_mic_4ops";
    case dnnl::cpu_isa::avx512_core:
      return "avx512_core";
    case dnnl::cpu_isa::avx512_core_vnni:
      return "avx512_core_vnni";
    case dnnl::cpu_isa::avx512_core_bf16:
      return "avx512_core_bf16";
    case dnnl::cpu_isa::avx512_core_amx:
      return "avx512_core_amx";
    default:
      return std::to_string(static_cast<int>(isa));
  }
}

}  // namespace troupe::model::cpu

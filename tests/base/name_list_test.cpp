#include "runtime/base/name_list.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace troupe::runtime {
namespace {

std::vector<std::string> names(int count) {
  std::vector<std::string> all;
  for (int i = 0; i < count; ++i) all.push_back("n" + std::to_string(i));
  return all;
}

TEST(NameList, FewNamesAreAllThere) {
  EXPECT_EQ(name_list({}), "");
  EXPECT_EQ(name_list({"a"}), "a");
  EXPECT_EQ(name_list({"a", "b"}), "a, b");
  EXPECT_EQ(name_list(names(16)),
            "n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11, n12, n13, n14, n15");
}

TEST(NameList, ManyNamesAreCounted) {
  EXPECT_EQ(name_list(names(17)), "n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11 and 5 others");
}

}  // namespace
}  // namespace troupe::runtime

#pragma once

// What tests expect of a Membership's answers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>

#include "pipeline/steps/membership.h"

namespace troupe::pipeline {

using Answer = runtime::Result<Membership::Answer>;

inline View expect_view(const Answer& answer, std::optional<std::uint32_t> taken_over = {}) {
  EXPECT_TRUE(answer.ok()) << (answer.ok() ? "" : answer.error().message);
  if (!answer.ok()) return {};
  EXPECT_TRUE(answer->view);
  EXPECT_THAT(answer->left_behind, testing::ElementsAre());
  if (taken_over) {
    EXPECT_EQ(answer->taken_over, *taken_over);
  }
  return answer->view.value_or(View{});
}

inline void expect_none(const Answer& answer) {
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_FALSE(answer->view);
  EXPECT_THAT(answer->left_behind, testing::ElementsAre());
}

inline void expect_refused(const Answer& answer, const std::string& what) {
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().kind, runtime::ErrorKind::kLostPeers);
  EXPECT_THAT(answer.error().message, testing::HasSubstr(what));
}

}  // namespace troupe::pipeline

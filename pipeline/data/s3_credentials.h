#pragma once

// The proof of who asks a store of S3, from where its users keep it.

#include <string>
#include <string_view>

namespace troupe::pipeline {

struct S3Credentials {
  std::string key, secret, token;  // empty: none
};

// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or else those of AWS_PROFILE
// (default) in ~/.aws/credentials, or AWS_SHARED_CREDENTIALS_FILE. Any thread.
S3Credentials s3_credentials();

// AWS_REGION or AWS_DEFAULT_REGION (us-east-1).
std::string s3_region();

// A variable of the environment; `otherwise` where it is empty or not set.
std::string environment(const char* name, std::string otherwise = "");

// Without blanks at its ends.
std::string_view trimmed(std::string_view text);

}  // namespace troupe::pipeline

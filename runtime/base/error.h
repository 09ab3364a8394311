#pragma once

// Broken invariants end the process (CHECK); what can happen in use is a value (Error, Result<T>).
// No exception crosses a header of Troupe: those of third-party libraries end in the file that
// includes the library.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace troupe::runtime {

// The kind of error. The value is the exit code that a command ends with.
enum class ErrorKind : std::uint8_t {
  kInternal = 1,   // a defect of Troupe or an environment that broke its promises
  kUsage = 2,      // a command line that cannot be meant
  kTopology = 3,   // a topology file or a model described in it
  kData = 4,       // a dataset or a checkpoint, reading or writing
  kLostPeers = 5,  // members lost beyond recovery
  kDiverged = 6,   // NaN, empty images, members that disagree
};

// `message` says what is wrong, where, and what to do, in one or a few lines without trailing
// newline.
struct Error {
  ErrorKind kind = ErrorKind::kInternal;
  std::string message;
};

int exit_code(ErrorKind kind);

// Either a value or an Error. value() on an error ends the process: check ok() before.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : content_(std::move(value)) {}
  Result(Error error) : content_(std::move(error)) {}

  bool ok() const { return std::holds_alternative<T>(content_); }
  explicit operator bool() const { return ok(); }
  T& value() &;
  const T& value() const&;
  T&& value() &&;
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  const Error& error() const { return std::get<Error>(content_); }

 private:
  std::variant<T, Error> content_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

// Prints place, condition and detail to standard error and aborts.
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               std::string_view detail);

// Always on, in every build. Second argument: anything convertible to std::string_view.
#define CHECK(condition, ...)                                           \
  do {                                                                  \
    if (!(condition)) [[unlikely]] {                                    \
      ::troupe::runtime::check_failed(__FILE__, __LINE__, #condition,   \
                                      ::std::string_view{__VA_ARGS__}); \
    }                                                                   \
  } while (false)

#define TROUPE_JOIN_INNER(a, b) a##b
#define TROUPE_JOIN(a, b) TROUPE_JOIN_INNER(a, b)

// ASSIGN_OR_RETURN(auto rows, read_rows(path)); returns the Error from the enclosing function.
#define ASSIGN_OR_RETURN(declaration, expression)                                          \
  auto TROUPE_JOIN(result_, __LINE__) = (expression);                                      \
  if (!TROUPE_JOIN(result_, __LINE__).ok()) return TROUPE_JOIN(result_, __LINE__).error(); \
  declaration = std::move(TROUPE_JOIN(result_, __LINE__)).value()

// RETURN_IF_ERROR(file.close());
#define RETURN_IF_ERROR(expression)                                           \
  do {                                                                        \
    if (auto result_of_expression = (expression); !result_of_expression.ok()) \
      return result_of_expression.error();                                    \
  } while (false)

template <class T>
T& Result<T>::value() & {
  CHECK(ok(), error().message);
  return std::get<T>(content_);
}
template <class T>
const T& Result<T>::value() const& {
  CHECK(ok(), error().message);
  return std::get<T>(content_);
}
template <class T>
T&& Result<T>::value() && {
  CHECK(ok(), error().message);
  return std::get<T>(std::move(content_));
}

}  // namespace troupe::runtime

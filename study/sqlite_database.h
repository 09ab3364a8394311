#pragma once

// A small database of SQLite in memory: tables that are written to a file or were read from one.

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "runtime/base/error.h"

struct sqlite3;

namespace troupe::study {

// std::monostate: NULL.
using SqlValue = std::variant<std::monostate, std::int64_t, double, std::string>;
using SqlRow = std::vector<SqlValue>;

// One thread. Errors are kData and say what SQLite says.
class SqliteDatabase {
 public:
  // An empty one.
  static runtime::Result<SqliteDatabase> create();
  // The content of a file; nobody sees what is changed in it.
  static runtime::Result<SqliteDatabase> read(std::string bytes);

  // Carries out one statement, whose "?" stand for the values, and returns what it selects.
  runtime::Result<std::vector<SqlRow>> run(const std::string& statement, const SqlRow& values = {});
  // As a file.
  runtime::Result<std::string> bytes() const;

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  explicit SqliteDatabase(sqlite3* database) : database_(database) {}
  runtime::Error error(const std::string& doing) const;

  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace troupe::study

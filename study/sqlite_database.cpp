#include "study/sqlite_database.h"

#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <sqlite3.h>

#include "runtime/base/overloaded.h"

namespace troupe::study {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

namespace {

struct Finish {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

int bind(sqlite3_stmt* statement, int number, const SqlValue& value) {
  return std::visit(
      runtime::Overloaded{
          [&](std::monostate) { return sqlite3_bind_null(statement, number); },
          [&](std::int64_t whole) { return sqlite3_bind_int64(statement, number, whole); },
          [&](double real) { return sqlite3_bind_double(statement, number, real); },
          [&](const std::string& text) {
            return sqlite3_bind_text(statement, number, text.data(), static_cast<int>(text.size()),
                                     SQLITE_TRANSIENT);
          }},
      value);
}

SqlValue value_at(sqlite3_stmt* statement, int column) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
      return std::int64_t{sqlite3_column_int64(statement, column)};
    case SQLITE_FLOAT:
      return sqlite3_column_double(statement, column);
    case SQLITE_NULL:
      return std::monostate{};
    default: {
      const void* const bytes = sqlite3_column_blob(statement, column);
      const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, column));
      return size == 0 ? std::string() : std::string(static_cast<const char*>(bytes), size);
    }
  }
}

}  // namespace

void SqliteDatabase::Close::operator()(sqlite3* database) const { sqlite3_close_v2(database); }

Error SqliteDatabase::error(const std::string& doing) const {
  return {ErrorKind::kData, fmt::format("SQLite: {}: {}", doing, sqlite3_errmsg(database_.get()))};
}

Result<SqliteDatabase> SqliteDatabase::create() {
  sqlite3* opened = nullptr;
  const int status = sqlite3_open(":memory:", &opened);
  SqliteDatabase made(opened);
  if (status != SQLITE_OK) return made.error("a database in memory");
  // A file may hold views that never end.
  constexpr int kStepsOfALook = 100'000'000;
  sqlite3_progress_handler(
      opened, kStepsOfALook, [](void*) { return 1; }, nullptr);
  return made;
}

Result<SqliteDatabase> SqliteDatabase::read(std::string bytes) {
  ASSIGN_OR_RETURN(SqliteDatabase made, create());
  // A log that was written ahead is not in the file, and a database in memory takes none.
  constexpr std::size_t kWriteVersion = 18, kReadVersion = 19;
  if (bytes.size() > kReadVersion && bytes[kReadVersion] == 2) {
    bytes[kWriteVersion] = bytes[kReadVersion] = 1;
  }
  auto* const copy = static_cast<unsigned char*>(sqlite3_malloc64(bytes.size() + 1));
  if (copy == nullptr) return made.error("no memory for the file");
  std::memcpy(copy, bytes.data(), bytes.size());
  const auto size = static_cast<sqlite3_int64>(bytes.size());
  const int status =
      sqlite3_deserialize(made.database_.get(), "main", copy, size, size,
                          SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY);
  if (status != SQLITE_OK) return made.error("the file");
  return made;
}

Result<std::vector<SqlRow>> SqliteDatabase::run(const std::string& statement,
                                                const SqlRow& values) {
  sqlite3_stmt* prepared = nullptr;
  const int status = sqlite3_prepare_v2(database_.get(), statement.c_str(), -1, &prepared, nullptr);
  const std::unique_ptr<sqlite3_stmt, Finish> owned(prepared);
  if (status != SQLITE_OK) return error(statement);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (bind(prepared, static_cast<int>(i) + 1, values[i]) != SQLITE_OK) return error(statement);
  }
  std::vector<SqlRow> rows;
  while (true) {
    const int step = sqlite3_step(prepared);
    if (step == SQLITE_DONE) return rows;
    if (step != SQLITE_ROW) return error(statement);
    SqlRow& row = rows.emplace_back();
    for (int i = 0; i < sqlite3_column_count(prepared); ++i) {
      row.push_back(value_at(prepared, i));
    }
  }
}

Result<std::string> SqliteDatabase::bytes() const {
  sqlite3_int64 size = 0;
  unsigned char* const made = sqlite3_serialize(database_.get(), "main", &size, 0);
  if (made == nullptr) return error("no memory for the file");
  std::string bytes(reinterpret_cast<const char*>(made), static_cast<std::size_t>(size));
  sqlite3_free(made);
  return bytes;
}

}  // namespace troupe::study

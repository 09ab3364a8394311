#include "fuzz/data_seeds.h"

#include <string>

#include "fuzz/seed_folder.h"
#include "pipeline/data/example_message.h"
#include "tests/pipeline/format_fixture.h"

namespace troupe::fuzz {

using pipeline::ExampleWriter;
using pipeline::SmallDigits;

void add_data_seeds(const std::filesystem::path& root) {
  const Folder folder(root / "fuzz_data_files");
  const auto add = [&](const char* name, char kind, const std::string& content) {
    folder.add_text(name, kind + content);
  };
  const SmallDigits digits{3};
  add("images", 0, digits.images());
  add("packed-images", 0, pipeline::gzip_text(digits.images()));
  add("float-images", 0,
      pipeline::idx_text(0x0d, {3, 1, 1, 1}, std::string("?\x80\0\0@\0\0\0@@\0\0", 12)));
  add("labels", 1, digits.labels());
  const float cells[] = {1, 0, 2.5f, 3};
  const float energy[] = {20};
  const std::int64_t shape[] = {2, 2};
  const std::string message = ExampleWriter()
                                  .floats("ECAL", cells)
                                  .integers("shape", shape)
                                  .floats("energy", energy)
                                  .message();
  const std::string bytes =
      ExampleWriter().bytes("ECAL", "\1\2\3\4").integers("energy", shape).message();
  add("records", 2, pipeline::small_records(1));
  add("packed-records", 2, pipeline::gzip_text(pipeline::small_records(1)));
  add("message", 3, message);
  add("message-of-bytes", 3, bytes);
  add("binning", 4, pipeline::small_binning());
  // One event of two cells: where its values begin and end, its bits, its values.
  const std::uint64_t head[] = {0, 2, 3};
  const float values[] = {1, 2};
  add("packed-events", 5,
      "\1\1" + std::string(reinterpret_cast<const char*>(head), sizeof(head)) +
          std::string(reinterpret_cast<const char*>(values), sizeof(values)));
  add("bucket-page", 6,
      "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t</"
      "NextContinuationToken><Contents><Key>a&amp;b</Key></Contents></ListBucketResult>");
}

}  // namespace troupe::fuzz

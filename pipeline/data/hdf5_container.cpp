#include "pipeline/data/hdf5_container.h"

#include <utility>

#include <fmt/format.h>

#include "pipeline/data/chunk_reader.h"
#include "pipeline/data/hdf5_file.h"

namespace troupe::pipeline {

using runtime::Result;

namespace {

PartInfo part_of(const Hdf5Dataset& dataset) {
  PartInfo part{dataset.name(),        dataset.shape(), dataset.type_text(), dataset.chunk(), {},
                dataset.stored_bytes()};
  for (const Hdf5Filter& filter : dataset.filters()) part.filters.push_back(filter.name);
  return part;
}

class Hdf5Container final : public EventContainer {
 public:
  explicit Hdf5Container(Hdf5File file) : file_(std::move(file)) {}

  FileFormat format() const override { return FileFormat::kHdf5; }
  bool contains(const std::string& name) const override { return file_.contains(name); }

  Result<std::unique_ptr<BlockReader>> images(const std::string& name,
                                              std::uint64_t) const override {
    ASSIGN_OR_RETURN(Hdf5Dataset dataset, file_.dataset(name));
    ASSIGN_OR_RETURN(ChunkReader reader, ChunkReader::create(std::move(dataset)));
    return std::unique_ptr<BlockReader>(std::make_unique<ChunkReader>(std::move(reader)));
  }

  Result<Column> column(const std::string& name) const override {
    ASSIGN_OR_RETURN(Hdf5Dataset opened, file_.dataset(name));
    const auto dataset = std::make_shared<const Hdf5Dataset>(std::move(opened));
    Column column{.place = dataset->place(),
                  .shape_text = dataset->shape_text(),
                  .shape = dataset->shape(),
                  .of_numbers = dataset->type() != Hdf5Type::kOther,
                  .home = dataset->home()};
    column.check = [dataset]() -> Result<void> {
      RETURN_IF_ERROR(dataset->check_claims());
      return dataset->check_written();
    };
    column.read = [dataset](std::uint64_t first, std::uint64_t count, double* out) {
      return dataset->read_rows(first, count, out);
    };
    return column;
  }

  Result<PartList> parts() const override {
    PartList list;
    ASSIGN_OR_RETURN(const Hdf5Walk walk, file_.walk());
    for (const Hdf5Place& place : walk.datasets) {
      ASSIGN_OR_RETURN(const Hdf5Dataset dataset, file_.dataset(place));
      list.parts.push_back(part_of(dataset));
    }
    if (!walk.complete) {
      list.note = fmt::format(
          "{}: not all that it holds is listed: it has more than {} links, or paths of more than "
          "{} bytes",
          file_.path(), kMostLinks, kMostPathBytes);
    }
    return list;
  }

  std::optional<double> number_attribute(const std::string& name) const override {
    return file_.number_attribute(name);
  }
  std::vector<std::pair<std::string, std::string>> attributes() const override {
    return file_.attributes();
  }

 private:
  Hdf5File file_;
};

}  // namespace

Result<std::unique_ptr<EventContainer>> open_hdf5(const std::string& path) {
  ASSIGN_OR_RETURN(Hdf5File file, Hdf5File::open(path));
  return std::unique_ptr<EventContainer>(std::make_unique<Hdf5Container>(std::move(file)));
}

}  // namespace troupe::pipeline

#include "main/open_study.h"

#include <filesystem>

namespace troupe {

using runtime::Result;
using study::StudyFolder;

Result<void> replay(const std::vector<study::JournalLine>& lines, OpenStudy& open) {
  for (const study::JournalLine& line : lines) {
    RETURN_IF_ERROR(tell(line, open.loaded.study.space, open.book));
  }
  return {};
}

std::uintmax_t bytes_of(const std::string& path) {
  std::error_code missing;
  return std::filesystem::file_size(path, missing);
}

Result<SeenStudy> look_at_study(const std::string& path) {
  ASSIGN_OR_RETURN(StudyFolder folder, StudyFolder::look_at(path));
  ASSIGN_OR_RETURN(study::LoadedStudy loaded, study::load_study(path + "/" + StudyFolder::kStudy));
  SeenStudy seen{std::move(folder), {}, std::make_unique<OpenStudy>(std::move(loaded))};
  seen.journal_bytes = bytes_of(seen.folder.journal());
  ASSIGN_OR_RETURN(seen.lines, study::read_study_journal(seen.folder.journal()));
  RETURN_IF_ERROR(replay(seen.lines, *seen.open));
  return seen;
}

}  // namespace troupe

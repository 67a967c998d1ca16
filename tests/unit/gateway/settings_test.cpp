#include "gateway/settings.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <stdexcept>

#include "tests/support/certificate.hpp"
#include "tests/support/temp_dir.hpp"

namespace fixpoint {
namespace {

TEST(Settings, AnUpstreamIsMadeAnewWhenItsCaFileHoldsSomethingElse) {
  const test::TempDir folder;
  const auto old = test::make_certificate(folder.path().string(), "old", "localhost");
  const auto rotated = test::make_certificate(folder.path().string(), "rotated", "localhost");
  Config config;
  config.upstreams.emplace_back();
  config.upstreams[0].name = "one";
  config.upstreams[0].base_url = "https://localhost:1/v1";
  config.upstreams[0].ca_file = old.certificate;
  config.upstreams.push_back(config.upstreams[0]);
  config.upstreams[1].name = "two";
  config.upstreams[1].ca_file.clear();

  Cores cores(1);
  MetricsRegistry registry;
  RequestMetrics metrics(registry);
  const Settings first(config, cores, metrics, nullptr);
  const Settings same(config, cores, metrics, &first);
  EXPECT_EQ(same.find_upstream("one"), first.find_upstream("one"));
  std::filesystem::copy_file(rotated.certificate, old.certificate,
                             std::filesystem::copy_options::overwrite_existing);
  const Settings changed(config, cores, metrics, &same);
  EXPECT_NE(changed.find_upstream("one"), same.find_upstream("one"));
  EXPECT_EQ(changed.find_upstream("two"), same.find_upstream("two"));
  std::filesystem::remove(old.certificate);
  EXPECT_THROW(Settings(config, cores, metrics, &changed), std::runtime_error);
}

}  // namespace
}  // namespace fixpoint

// Golden texts: tests/golden/fuse/*.crs hold a graph and the lines of its plan that matter.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "fuse/plan.h"
#include "passes/passes.h"

namespace cresset {
namespace {

struct Golden {
  std::string graph;
  std::vector<std::string> present, absent;
};

Golden read(const std::filesystem::path& path) {
  Golden golden;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    constexpr std::string_view kCheck = "# check: ", kCheckNot = "# check-not: ";
    if (line.starts_with(kCheck))
      golden.present.push_back(line.substr(kCheck.size()));
    else if (line.starts_with(kCheckNot))
      golden.absent.push_back(line.substr(kCheckNot.size()));
    else if (!line.starts_with("#"))
      golden.graph += line + "\n";
  }
  return golden;
}

TEST(Golden, FusionPlans) {
  const std::filesystem::path folder = std::filesystem::path(CRESSET_TESTS_FOLDER) / "golden/fuse";
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path().string());
    ++files;
    const Golden golden = read(entry.path());
    Result<std::unique_ptr<graph::Graph>> graph = graph::parse(golden.graph);
    ASSERT_TRUE(graph.ok()) << describe(graph.fallback());
    passes::run(**graph, {});
    const std::string plan = fuse::print(**graph, fuse::plan(**graph, {}));
    size_t from = 0;
    for (const std::string& line : golden.present) {
      const size_t at = plan.find(line, from);
      EXPECT_NE(at, std::string::npos) << "missing, in this order: " << line << "\n" << plan;
      if (at != std::string::npos) from = at;
    }
    for (const std::string& line : golden.absent) EXPECT_EQ(plan.find(line), std::string::npos) << line << "\n" << plan;
  }
  EXPECT_GT(files, 0u);
}

}  // namespace
}  // namespace cresset

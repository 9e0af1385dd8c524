#include "base/break_reason.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace cresset {
namespace {

using testing::EndsWith;
using testing::StartsWith;

const std::vector<BreakKind>& all_kinds() {
  static const std::vector<BreakKind> kinds = {
#define CRESSET_BREAK_KIND(name, description, remedy) BreakKind::name,
#include "base/break_reasons.def"
#undef CRESSET_BREAK_KIND
  };
  return kinds;
}

TEST(BreakReason, EveryKindHasItsOwnDescriptionAndARemedy) {
  std::set<std::string_view> names, descriptions;
  for (const BreakKind kind : all_kinds()) {
    EXPECT_TRUE(names.insert(name_of(kind)).second) << name_of(kind);
    EXPECT_TRUE(descriptions.insert(describe(kind)).second) << name_of(kind);
    EXPECT_FALSE(remedy_of(kind).empty()) << name_of(kind);
    EXPECT_FALSE(remedy_of(kind).ends_with('.')) << name_of(kind);  // more text may follow
  }
  EXPECT_EQ(name_of(BreakKind::DataDependentValue), "DataDependentValue");
  EXPECT_EQ(name_of(BreakKind::InternalError), "InternalError");
}

TEST(BreakReason, KindsAreFoundByName) {
  for (const BreakKind kind : all_kinds()) EXPECT_EQ(kind_named(name_of(kind)), kind);
  EXPECT_EQ(kind_named("NoSuchKind"), std::nullopt);
}

TEST(BreakReason, NoReasonIsEmptyAndOfNoKind) {
  const BreakReason none;
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.text(), "");
  for (const BreakKind kind : all_kinds()) EXPECT_FALSE(none.is(kind)) << name_of(kind);
}

TEST(BreakReason, TextIsDetailLocationAndRemark) {
  BreakReason reason(BreakKind::MemoryAccess, "the memory of a tensor is asked for");
  EXPECT_FALSE(reason.empty());
  EXPECT_TRUE(reason.is(BreakKind::MemoryAccess));
  EXPECT_FALSE(reason.is(BreakKind::SideEffect));
  EXPECT_EQ(reason.text(), "the memory of a tensor is asked for");
  reason.location = "a.py:3 in f";
  EXPECT_EQ(reason.text(), "the memory of a tensor is asked for at a.py:3 in f");
  reason.remark = " (fullgraph=True)";
  EXPECT_EQ(reason.text(), "the memory of a tensor is asked for at a.py:3 in f (fullgraph=True)");
}

TEST(BreakReason, TheTextComesBeforeKindAndRemedy) {
  BreakReason reason(BreakKind::UserRequest, "cresset.graph_break()");
  reason.location = "a.py:3 in f";
  EXPECT_THAT(reason.with_remedy(), StartsWith("cresset.graph_break() at a.py:3 in f [UserRequest: "));
  EXPECT_THAT(reason.with_remedy(), EndsWith(std::string(reason.remedy()) + "]"));
}

}  // namespace
}  // namespace cresset

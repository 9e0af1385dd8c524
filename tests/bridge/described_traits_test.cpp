// The traits of rows beside what torch's tags and schemas say.
#include "bridge/aten/described_traits.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include "bridge/aten/op_schema.h"
#include "bridge/decompositions/recurrent_layers.h"
#include "ops/op_def.h"

namespace cresset::bridge {
namespace {

TEST(DescribedTraits, RowsDrawRandomNumbersWhereTorchSaysSo) {
  for (const ops::OpDef* def : ops::all()) {
    SCOPED_TRACE(std::string(def->schema));
    const graph::OpId op = graph::op_id(ops::name_of(*def));
    if (!ops::name_of(*def).starts_with("aten::") || !find_operator(op)) continue;
    const ops::OpTraits described = described_traits(op);
    if (is_recurrent_layer(find_operator(op)->operator_name())) continue;  // captured in steps where it draws
    EXPECT_EQ(def->traits.draws, described.draws);
    if (described.draws) EXPECT_EQ(def->traits.dropout, described.dropout);
  }
}

TEST(DescribedTraits, EveryRowWithoutRulesIsAnOperatorOfTorch) {
  ASSERT_FALSE(ops::rows_without_rules().empty());
  for (const ops::TraitRow& row : ops::rows_without_rules()) {
    SCOPED_TRACE(std::string(row.name));
    const std::optional<c10::OperatorHandle> handle = find_operator(graph::op_id(row.name));
    ASSERT_TRUE(handle.has_value());
    EXPECT_EQ(ops::find(row.name), nullptr);
    const int8_t pivots = row.traits.pivots;
    if (pivots < 0) continue;
    EXPECT_NE(handle->schema().arguments().at(static_cast<size_t>(pivots)).name().find("pivots"), std::string::npos);
  }
}

TEST(DescribedTraits, OperatorsWithoutARowAreReadFromTheirHandles) {
  const auto described = [](const char* name) { return described_traits(graph::op_id(name)); };
  EXPECT_TRUE(described("aten::binomial").draws);
  EXPECT_TRUE(described("aten::_efficient_attention_forward").draws);
  EXPECT_GE(described("aten::_efficient_attention_forward").dropout, 0);
  EXPECT_FALSE(described("aten::_standard_gamma_grad").draws);
  EXPECT_FALSE(described("aten::rrelu_with_noise_backward").draws);
  EXPECT_FALSE(described("aten::_scaled_dot_product_flash_attention_backward").draws);
  EXPECT_FALSE(described("library::no_such_operator").draws);
}

}  // namespace
}  // namespace cresset::bridge

#include "bridge/capture/data_dependent_ops.h"

#include <ATen/core/stack.h>

#include <algorithm>

#include "bridge/capture/arguments.h"
#include "bridge/capture/capture.h"
#include "bridge/capture/sym_node.h"

namespace cresset::bridge {
namespace {

using graph::Arg;
using graph::OpId;
using graph::TensorType;
using graph::ValueId;

struct Producers {
  OpId nonzero = graph::op_id("aten::nonzero"), masked_select = graph::op_id("aten::masked_select"),
       unique2 = graph::op_id("aten::_unique2"), unique_dim = graph::op_id("aten::unique_dim"),
       unique_consecutive = graph::op_id("aten::unique_consecutive"),
       repeat_interleave = graph::op_id("aten::repeat_interleave.Tensor"), bincount = graph::op_id("aten::bincount"),
       item = graph::op_id("aten::_local_scalar_dense");
};
const Producers& producers() {
  static const Producers all;
  return all;
}

// Makes the result types of a data-dependent call.
class ResultTypes {
 public:
  ResultTypes(graph::Graph& graph, const std::vector<Arg>& args, std::vector<std::pair<uint32_t, uint32_t>>& fresh)
      : graph_(graph), pool_(graph.pool()), args_(args), fresh_(fresh) {}

  std::vector<TensorType> of(OpId op) {
    const Producers& p = producers();
    const TensorType& self = graph_.type(std::get<ValueId>(args_[0]));
    device_ = self.device;
    if (op == p.nonzero) {
      const sym::ExprId found = count(0, 0);
      at_most(found, graph::numel(pool_, self.sizes));
      add(DType::I64, {found, pool_.constant(static_cast<int64_t>(self.rank()))});
      types_.back().strides = {pool_.constant(1), found};  // the indices of a dimension are contiguous
    } else if (op == p.masked_select) {
      add(self.dtype, {count(0, 0)});
    } else if (op == p.repeat_interleave) {
      const auto* given = std::get_if<sym::ExprId>(&args_[1]);
      add(self.dtype, {given != nullptr ? *given : count(0, 0)});
    } else if (op == p.bincount) {
      counts_of_numbers();
    } else if (op == p.unique_dim) {
      unique_along(self, args_[1]);
    } else if (op == p.unique_consecutive && !std::holds_alternative<graph::None>(args_[3])) {
      unique_along(self, args_[3]);
    } else {
      unique_values(self, op == p.unique2);
    }
    return std::move(types_);
  }

 private:
  // bincount(self, weights, minlength)
  void counts_of_numbers() {
    if (graph_.type(std::get<ValueId>(args_[0])).rank() != 1)
      abort_capture(BreakKind::InvalidArguments, "bincount of what is no vector");
    const auto* weights = std::get_if<ValueId>(&args_[1]);
    if (weights != nullptr) not_empty();  // for empty input ATen ignores the weights and counts in integers
    const sym::ExprId found = count(0, 0);
    graph_.env().facts().learn(pool_.ge(found, std::get<sym::ExprId>(args_[2])));
    const DType counts = weights == nullptr ? DType::I64 : graph_.type(*weights).dtype;
    add(weights == nullptr || counts == DType::F32 ? counts : DType::F64, {found});
  }
  void not_empty() {
    const sym::ExprId any =
        pool_.ge(graph::numel(pool_, graph_.type(std::get<ValueId>(args_[0])).sizes), pool_.constant(1));
    if (!graph_.env().evaluate(any, [] { return current_reason(); }).value_or(false))
      abort_capture(BreakKind::InvalidArguments, "weights of numbers of which there are none");
  }
  void unique_values(const TensorType& self, bool sorted_variant) {
    const size_t flags = sorted_variant ? 2 : 1;
    const sym::ExprId found = distinct(0, 0, graph::numel(pool_, self.sizes));
    const sym::ExprId none = pool_.constant(0);
    add(self.dtype, {found});
    add(DType::I64, std::get<bool>(args_[flags]) ? self.sizes : std::vector{none});
    add(DType::I64, {std::get<bool>(args_[flags + 1]) ? found : none});
  }
  // ATen computes with the dimension moved to the front and moves it back; the remaining results are always returned.
  void unique_along(const TensorType& self, const Arg& along) {
    const sym::ExprId which = graph_.env().simplify(std::get<sym::ExprId>(along));
    if (!pool_.is_const(which))
      abort_capture(BreakKind::DataDependentValue, "unique along a dimension that is not known");
    const int64_t wrapped = pool_.const_value(which);
    const auto dim = static_cast<std::ptrdiff_t>(wrapped < 0 ? wrapped + static_cast<int64_t>(self.rank()) : wrapped);
    std::vector<sym::ExprId> sizes = self.sizes;
    const sym::ExprId whole = sizes.at(static_cast<size_t>(dim));
    const sym::ExprId found = distinct(0, static_cast<uint32_t>(dim), whole);
    sizes[static_cast<size_t>(dim)] = found;
    add(self.dtype, sizes);
    std::rotate(sizes.begin(), sizes.begin() + dim, sizes.begin() + dim + 1);
    std::vector<sym::ExprId> strides = graph::contiguous_strides(pool_, sizes);
    std::rotate(strides.begin(), strides.begin() + 1, strides.begin() + dim + 1);
    types_.back().strides = std::move(strides);
    add(DType::I64, {whole});
    add(DType::I64, {found});
  }

  sym::ExprId count(uint32_t result, uint32_t dim) {
    fresh_.emplace_back(result, dim);
    return graph_.env().new_unbacked("a size made by data");
  }
  sym::ExprId distinct(uint32_t result, uint32_t dim, sym::ExprId of) {
    const sym::ExprId found = count(result, dim);
    at_most(found, of);
    return found;
  }
  // Learns a bound which the operator guarantees for all data.
  void at_most(sym::ExprId found, sym::ExprId limit) { graph_.env().facts().learn(pool_.le(found, limit)); }

  void add(DType dtype, std::vector<sym::ExprId> sizes) {
    TensorType type;
    type.dtype = dtype;
    type.device = device_;
    type.strides = graph::contiguous_strides(pool_, sizes);
    type.sizes = std::move(sizes);
    types_.push_back(std::move(type));
  }

  graph::Graph& graph_;
  sym::ExprPool& pool_;
  const std::vector<Arg>& args_;
  std::vector<std::pair<uint32_t, uint32_t>>& fresh_;
  graph::Device device_;
  std::vector<TensorType> types_;
};

}  // namespace

bool makes_data_dependent_sizes(OpId op) {
  const Producers& p = producers();
  return op == p.nonzero || op == p.masked_select || op == p.unique2 || op == p.unique_dim ||
         op == p.unique_consecutive || op == p.repeat_interleave || op == p.bincount;
}

std::vector<TensorType> data_dependent_types(graph::Graph& graph, OpId op, const std::vector<Arg>& args,
                                             std::vector<std::pair<uint32_t, uint32_t>>& fresh) {
  return ResultTypes(graph, args, fresh).of(op);
}

bool reads_elements(const DataDependentCall& call) { return call.op == producers().item; }

int64_t element(const at::Tensor& tensor, uint32_t which) {
  return tensor.reshape({-1})[static_cast<int64_t>(which)].item<int64_t>();
}

// The data-dependent dimension, if there are further dimensions: it is outermost in memory (ResultTypes::unique_along).
static std::optional<int64_t> made_along(const c10::FunctionSchema& schema, const torch::jit::Stack& args) {
  const std::optional<int> position = schema.argumentIndexWithName("dim");
  if (!position || args[static_cast<size_t>(*position)].isNone()) return std::nullopt;
  return args[static_cast<size_t>(*position)].toInt();
}

std::vector<at::Tensor> call_data_dependent(const c10::OperatorHandle& op, const std::vector<Arg>& args,
                                            const std::function<at::Tensor(ValueId)>& tensor,
                                            const std::function<int64_t(sym::ExprId)>& integer) {
  torch::jit::Stack stack;
  for (size_t i = 0; i < args.size(); ++i)
    stack.push_back(to_torch(args[i], arg_type(op.schema().arguments()[i]), tensor, integer));
  const std::optional<int64_t> front = made_along(op.schema(), stack);
  op.callBoxed(stack);
  const bool by_column = op.schema().name() == "aten::nonzero";
  std::vector<at::Tensor> out;
  for (const c10::IValue& result : stack) {
    const at::Tensor made = result.toTensor();
    if (by_column)
      out.push_back(made.t().contiguous().t());
    else if (front && out.empty())
      out.push_back(made.movedim(*front, 0).contiguous().movedim(0, *front));
    else
      out.push_back(made.contiguous());
  }
  return out;
}

}  // namespace cresset::bridge

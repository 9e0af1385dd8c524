#include "bridge/capture/data_dependent_errors.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <string_view>

#include "bridge/aten/dtypes.h"
#include "bridge/capture/graph_cut.h"
#include "bridge/capture/graph_interpreter.h"
#include "bridge/capture/rng_state.h"
#include "ops/op_def.h"

namespace cresset::bridge {

using graph::Arg;
using graph::OptionalValue;
using graph::ValueId;

namespace {

using ops::Raises;

bool is_mask(DType dtype) { return dtype == DType::Bool || dtype == DType::U8; }

}  // namespace

bool has_known_cause(graph::OpId op) {
  const Raises cause = ops::traits(op).raises;
  return cause != Raises::Never && cause != Raises::Unknown;
}

bool may_size_by_data(const graph::Graph& graph, graph::OpId op, const std::vector<Arg>& args) {
  if (ops::traits(op).raises != Raises::Anything) return false;
  bool any = false;
  graph::Graph::for_each_value(args, [&](const ValueId& v) { any = any || is_integral(graph.type(v).dtype); });
  return any;
}

static std::vector<IndexBound> bounds_of_list(const graph::Graph& graph, const std::vector<Arg>& args) {
  const auto& sizes = graph.type(std::get<ValueId>(args.at(0))).sizes;
  const auto& indices = std::get<std::vector<OptionalValue>>(args.at(1));
  std::vector<IndexBound> found;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d]) continue;
    if (is_mask(graph.type(*indices[d]).dtype) || d >= sizes.size()) return {};
    found.push_back({*indices[d], sizes[d], /*from_the_end=*/true});
  }
  return found;
}

std::vector<IndexBound> index_bounds(const graph::Graph& graph, graph::OpId op, const std::vector<Arg>& args) {
  const Raises cause = ops::traits(op).raises;
  const auto is_index = [&](const IndexBound& bound) {
    const DType dtype = graph.type(bound.indices).dtype;
    return dtype == DType::I64 || dtype == DType::I32;
  };
  std::vector<IndexBound> found;
  switch (cause) {
    case Raises::List:
      found = bounds_of_list(graph, args);
      break;
    case Raises::AlongDim:
    case Raises::AlongDimEither: {
      const auto dim = std::get<sym::ExprId>(args.at(1));
      const auto& sizes = graph.type(std::get<ValueId>(args.at(0))).sizes;
      if (!graph.pool().is_const(dim) || sizes.empty()) return {};
      const int64_t d = graph.pool().const_value(dim);
      found.push_back({std::get<ValueId>(args.at(2)), sizes.at(static_cast<size_t>(d < 0 ? d + std::ssize(sizes) : d)),
                       cause == Raises::AlongDimEither});
      break;
    }
    case Raises::Rows:
      found.push_back({std::get<ValueId>(args.at(1)), graph.type(std::get<ValueId>(args.at(0))).sizes.at(0), false});
      break;
    default:
      return {};
  }
  return std::all_of(found.begin(), found.end(), is_index) ? found : std::vector<IndexBound>{};
}

bool may_raise(const graph::Graph& graph, graph::OpId op, const std::vector<Arg>& args) {
  const Raises cause = ops::traits(op).raises;
  const auto is_float_tensor = [&](const Arg& arg) {
    const auto* v = std::get_if<ValueId>(&arg);
    return v != nullptr && !is_integral(graph.type(*v).dtype);
  };
  switch (cause) {
    case Raises::Never:
      return false;
    case Raises::List: {
      const auto& indices = std::get<std::vector<OptionalValue>>(args.at(1));
      return std::any_of(indices.begin(), indices.end(),
                         [&](const OptionalValue& v) { return v && !is_mask(graph.type(*v).dtype); });
    }
    case Raises::Divisor:
      return !is_float_tensor(args.at(0)) && !is_float_tensor(args.at(1)) && !std::holds_alternative<double>(args[1]);
    case Raises::Position:
      return !graph.pool().is_const(std::get<sym::ExprId>(args.at(2)));
    case Raises::Asked: {
      const auto* checked = std::get_if<bool>(&args.back());
      return checked != nullptr && *checked;
    }
    case Raises::AlongDim:
    case Raises::AlongDimEither:
    case Raises::Rows:
    case Raises::Elements:
    case Raises::Targets:
    case Raises::Anything:
    case Raises::Unknown:
      return true;
  }
  return true;
}

std::optional<int64_t> DataDependentErrors::work(Raises cause, const std::vector<Arg>& args) {
  std::vector<ValueId> asked;
  int64_t itself = 0;
  const auto ask = [&](size_t i) {
    if (const auto* value = std::get_if<ValueId>(&args.at(i))) asked.push_back(*value);
  };
  switch (cause) {
    case Raises::Never:
    case Raises::Unknown:
      return std::nullopt;
    case Raises::List:
      for (const OptionalValue& v : std::get<std::vector<OptionalValue>>(args.at(1)))
        if (v && !is_mask(graph_.type(*v).dtype) && now_.work({*v})) asked.push_back(*v);
      break;
    case Raises::AlongDim:
    case Raises::AlongDimEither:
      ask(2);
      break;
    case Raises::Divisor:
      for (size_t i = 0; i < 2; ++i)
        if (const auto* v = std::get_if<ValueId>(&args[i]); v != nullptr && !is_integral(graph_.type(*v).dtype))
          return {};
      [[fallthrough]];
    case Raises::Rows:
    case Raises::Elements:
    case Raises::Targets:
      ask(1);
      break;
    case Raises::Position: {
      const auto index = std::get<sym::ExprId>(args[2]);
      if (now_.integer(index)) return std::nullopt;  // the shape rule knows the index
      std::optional<std::vector<ValueId>> read = now_.elements_in(index);
      if (!read) return std::nullopt;
      asked = *std::move(read);
      break;
    }
    case Raises::Asked:
      if (const auto* checked = std::get_if<bool>(&args.back()); checked == nullptr || !*checked) return {};
      [[fallthrough]];
    case Raises::Anything: {
      constexpr int64_t kPerElement = 64;
      graph::Graph::for_each_value(args, [&](const ValueId& v) {
        asked.push_back(v);
        itself += kPerElement * now_.elements(v);
      });
    }
  }
  const std::optional<int64_t> before = now_.work(asked);
  if (!before) return std::nullopt;
  for (const ValueId v : asked) itself += now_.elements(v);
  return *before + itself;
}

bool DataDependentErrors::raises(Raises cause, graph::OpId op, const std::vector<Arg>& args) {
  bool found = false;
  try {
    found = asks(cause, op, args);
  } catch (const std::exception&) {  // an earlier operator raises: the segment itself will report it
    found = true;
  }
  now_.forget_large();
  return found;
}

bool DataDependentErrors::asks(Raises cause, graph::OpId op, const std::vector<Arg>& args) {
  const auto type = [&](size_t i) -> const graph::TensorType& { return graph_.type(std::get<ValueId>(args.at(i))); };
  const auto size_along = [&]() -> std::optional<sym::ExprId> {  // of the first argument, along the second
    const auto& sizes = type(0).sizes;
    const std::optional<int64_t> dim = now_.integer(std::get<sym::ExprId>(args[1]));
    if (!dim || sizes.empty()) return std::nullopt;
    return sizes.at(static_cast<size_t>(*dim < 0 ? *dim + static_cast<int64_t>(sizes.size()) : *dim));
  };
  switch (cause) {
    case Raises::Never:
    case Raises::Unknown:
      return false;
    case Raises::List:
      return any_list_outside(std::get<ValueId>(args[0]), std::get<std::vector<OptionalValue>>(args[1]));
    case Raises::AlongDim:
    case Raises::AlongDimEither: {
      const std::optional<sym::ExprId> size = size_along();
      return size && any_outside(std::get<ValueId>(args[2]), *size, cause == Raises::AlongDimEither);
    }
    case Raises::Rows:
      return any_outside(std::get<ValueId>(args[1]), type(0).sizes.at(0), false);
    case Raises::Elements:
      return any_outside(std::get<ValueId>(args[1]), now_.elements(std::get<ValueId>(args[0])), true);
    case Raises::Targets: {
      const auto& sizes = type(0).sizes;
      const std::optional<int64_t> classes = now_.integer(sizes.at(sizes.size() > 1 ? 1 : 0));
      if (!classes) return false;
      return any_outside(std::get<ValueId>(args[1]), *classes, false, now_.integer(std::get<sym::ExprId>(args[4])));
    }
    case Raises::Divisor:
      return divides_by_zero(args);
    case Raises::Position: {
      const std::optional<sym::ExprId> along = size_along();
      const std::optional<int64_t> size = along ? now_.integer(*along) : std::nullopt;
      const std::optional<int64_t> index = now_.number(std::get<sym::ExprId>(args[2]));
      return size && index && (*index < -*size || *index >= *size);
    }
    case Raises::Anything:
    case Raises::Asked:
      return raises_itself(op, args);
  }
  return false;
}

bool DataDependentErrors::raises_itself(graph::OpId op, const std::vector<Arg>& args) {
  std::optional<SavedGenerator> before;
  if (is_random(op)) before.emplace();
  bool raised = false;
  try {
    graph::Node node;  // in no graph, since its results are not used
    node.op = op;
    node.args = args;
    run_by_aten(
        graph_, node, [&](ValueId v) { return now_.of(v); }, [&](sym::ExprId e) { return now_.number(e).value(); });
  } catch (const std::exception&) {
    raised = true;
  }
  if (before) before->restore();
  return raised;
}

bool DataDependentErrors::any_list_outside(ValueId self, const std::vector<OptionalValue>& indices) {
  const auto& sizes = graph_.type(self).sizes;
  size_t d = 0;
  for (const OptionalValue& v : indices) {
    const bool mask = v && is_mask(graph_.type(*v).dtype);
    // Indices that only data will give are not known now. Those of a mask lie inside.
    if (v && !mask && d < sizes.size() && now_.work({*v}) && any_outside(*v, sizes[d], true)) return true;
    d += mask ? graph_.type(*v).sizes.size() : 1;
  }
  return false;
}

bool DataDependentErrors::any_outside(ValueId indices, sym::ExprId size, bool from_the_end) {
  const std::optional<int64_t> n = now_.integer(size);
  return n && any_outside(indices, *n, from_the_end);
}

bool DataDependentErrors::any_outside(ValueId indices, int64_t size, bool from_the_end,
                                      std::optional<int64_t> ignored) {
  at::Tensor values = now_.of(indices);
  if (!at::isIntegralType(values.scalar_type(), false) || values.numel() == 0) return false;
  for (int64_t d = 0; d < values.dim(); ++d)  // a single copy of repeated elements
    if (values.stride(d) == 0) values = values.narrow(d, 0, 1);
  values = values.to(at::kLong).contiguous();
  const int64_t* first = values.const_data_ptr<int64_t>();
  const int64_t least = from_the_end ? -size : 0;
  return std::any_of(first, first + values.numel(),
                     [&](int64_t i) { return (i < least || i >= size) && i != ignored; });
}

bool DataDependentErrors::divides_by_zero(const std::vector<Arg>& args) {
  const auto* self = std::get_if<ValueId>(&args[0]);
  if (self != nullptr && now_.elements(*self) == 0) return false;
  if (const auto* number = std::get_if<sym::ExprId>(&args[1])) return now_.integer(*number) == 0;
  const auto* other = std::get_if<ValueId>(&args[1]);
  if (other == nullptr) return false;
  const at::Tensor values = now_.of(*other);
  return values.numel() > 0 && !values.all().item<bool>();
}

}  // namespace cresset::bridge

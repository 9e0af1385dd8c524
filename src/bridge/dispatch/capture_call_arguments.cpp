#include "bridge/aten/autograd_history.h"
#include "bridge/dispatch/capture_call.h"

namespace cresset::bridge {

using graph::Arg;
using graph::ValueId;

std::vector<Arg> CaptureCall::arguments(size_t count) {
  std::vector<Arg> args;
  args.reserve(count);
  capture_.float_numbers.clear();
  for (size_t i = 0; i < count; ++i) args.push_back(to_graph(capture_, argument(i), entry_.arg_types[i]));
  if (AutogradNotes* const notes = this->notes()) note_histories(*notes, args);
  if (!capture_.float_numbers.empty()) give_dtype(args);
  if (count > 0 && entry_.arg_types[0] == ArgType::Tensor) number_as_tensor(args);
  return args;
}

// Notes are taken only for the operator which the program calls: nested operators see tensors below autograd.
AutogradNotes* CaptureCall::notes() const {
  return capture_.recording == 1 && capture_.recorder().has_graph() ? capture_.counters.notes.get() : nullptr;
}

void CaptureCall::note_histories(AutogradNotes& notes, const std::vector<Arg>& args, bool of_view) const {
  for (size_t i = 0; i < args.size(); ++i) {
    const c10::IValue& given = argument(i);
    if (const auto* value = std::get_if<ValueId>(&args[i]); value != nullptr && given.isTensor())
      notes.note(given.toTensor(), *value, of_view && i == 0);
    if (i == 0 && entry_.op_class == OpEntry::Class::InPlace && is_recorded_view(given.toTensor()))
      notes.note_written_view();
    const auto* values = std::get_if<std::vector<graph::OptionalValue>>(&args[i]);
    if (values == nullptr || !given.isList()) continue;
    const c10::ArrayRef<c10::IValue> list = given.toListRef();
    for (size_t k = 0; k < std::min(list.size(), values->size()); ++k)
      if ((*values)[k] && list[k].isTensor()) notes.note(list[k].toTensor(), *(*values)[k]);
  }
}

std::vector<Arg> CaptureCall::arguments_of_view(TraceTensor& parent) {
  std::vector<Arg> args{capture_.memory_of(parent)};
  for (size_t i = 1; i < count_; ++i) args.push_back(to_graph(capture_, argument(i), entry_.arg_types[i]));
  if (AutogradNotes* const notes = this->notes()) note_histories(*notes, args, /*of_view=*/true);
  return args;
}

void CaptureCall::number_as_tensor(std::vector<Arg>& args) {
  if (std::holds_alternative<ValueId>(args[0]) || std::holds_alternative<graph::None>(args[0])) return;
  bool others = false;
  graph::Graph::for_each_value(args, [&](const ValueId&) { others = true; });
  if (others) return;
  const bool symbolic = capture_.client().symbolic_number(argument(0).toTensor()).has_value();
  if (!symbolic && !is_float_among_numbers(args)) {
    args[0] = value_of(capture_, argument(0).toTensor());
    return;
  }
  const DType dtype = std::holds_alternative<bool>(args[0])     ? DType::Bool
                      : std::holds_alternative<double>(args[0]) ? capture_.default_dtype
                                                                : DType::I64;
  args[0] = capture_.recorder().call(graph::op_id("aten::scalar_tensor"),
                                     {args[0], dtype, graph::None{}, graph::None{}, graph::None{}})[0];
}

bool CaptureCall::is_float_among_numbers(const std::vector<Arg>& args) const {
  if (!std::holds_alternative<double>(args[0])) return false;
  for (size_t i = 1; i < args.size(); ++i)
    if (entry_.arg_types[i] == ArgType::Tensor && !std::holds_alternative<graph::None>(args[i])) return true;
  return false;
}

void CaptureCall::give_dtype(std::vector<Arg>& args) {
  const std::vector<ValueId> numbers = std::exchange(capture_.float_numbers, {});
  const auto is_number = [&](ValueId v) { return std::find(numbers.begin(), numbers.end(), v) != numbers.end(); };
  std::optional<DType> dtype;
  bool scalars = true;  // whether the other tensors are 0-dim
  graph::Graph::for_each_value(args, [&](const ValueId& v) {
    const DType other = capture_.graph().type(v).dtype;
    scalars = scalars && (is_number(v) || capture_.graph().type(v).rank() == 0);
    if (!is_number(v) && is_float(other)) dtype = dtype ? promote(*dtype, other) : other;
    if (!is_number(v) && category(other) == DTypeCategory::Complex)
      abort_capture(BreakKind::UnsupportedDtype, "a float beside complex numbers");
  });
  if (dtype.value_or(capture_.default_dtype) == DType::F64) return;
  // In f32 the number would decide the result's dtype; in the tensors' own dtype it would be rounded.
  if (scalars && dtype && compute_dtype(*dtype) != *dtype)
    abort_capture(BreakKind::UnsupportedDtype, "a float beside a number in half precision");
  for (Arg& arg : args)
    if (const auto* v = std::get_if<ValueId>(&arg); v != nullptr && is_number(*v))
      arg = capture_.recorder().call(graph::op_id("aten::_to_copy"),
                                     {*v, compute_dtype(dtype.value_or(capture_.default_dtype)), graph::None{},
                                      graph::None{}, graph::None{}, false, graph::None{}})[0];
}

void CaptureCall::append_defaults(std::vector<Arg>& args) {
  const auto& schema = entry_.functional_handle->schema().arguments();
  while (args.size() < schema.size()) {
    const c10::Argument& a = schema[args.size()];
    if (!a.default_value())
      abort_capture(BreakKind::UnsupportedOperator, entry_.name + " has no functional form with the same arguments");
    args.push_back(to_graph(capture_, *a.default_value(), arg_type(a)));
  }
}

}  // namespace cresset::bridge

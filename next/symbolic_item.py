def sub(path, *pairs):
    s=open(path).read()
    for a,b in pairs:
        assert a in s, (path,a)
        s=s.replace(a,b,1)
    open(path,'w').write(s)
sub('src/bridge/capture.h',('  // The number that a one-element value holds','''  // With symbolic_numbers: the integer that a one-element value will hold, as an unbacked symbol.
  c10::SymInt symbolic_integer(graph::ValueId value);

  // The number that a one-element value holds'''),
('  DType default_dtype;\n','  bool symbolic_numbers = false;  // item() and tolist() of integers give symbols instead of reading the number\n  DType default_dtype;\n'))
sub('src/bridge/capture.cpp',('// A mask covers dimensions of the tensor','''c10::SymInt Capture::symbolic_integer(graph::ValueId value) {
  const auto position = static_cast<uint32_t>(graph_->inputs.size());
  graph::TensorType type = graph_->type(value);
  graph_->add_input(std::move(type), "a number");
  const sym::ExprId number = env().new_unbacked("a number in tensor data", sym::Interval::all());
  symbols_.push_back({env().pool().var_of(number),
                      {runtime::SymbolSource::Kind::InputSize, position, StagedProgram::kNumber}});
  data_calls_.push_back({graph::op_id("aten::_local_scalar_dense"), {value}, graph_->order.size(), {position}});
  return SymNode::make_int(env_ptr(), number);
}

// A mask covers dimensions of the tensor'''))
sub('src/bridge/capture_kernel.cpp',('    const Arg value = to_graph(capture_, argument(0), ArgType::Tensor);\n','''    const Arg value = to_graph(capture_, argument(0), ArgType::Tensor);
    const graph::TensorType& type = capture_.graph().type(std::get<ValueId>(value));
    if (capture_.symbolic_numbers && category(type.dtype) == DTypeCategory::Integer &&
        type.device.kind == graph::DeviceKind::Cpu) {
      finish({at::Scalar(capture_.symbolic_integer(std::get<ValueId>(value)))});
      return true;
    }
'''))
sub('src/bridge/stages.h',(' public:\n  // Cuts and compiles.',' public:\n  static constexpr uint32_t kNumber = UINT32_MAX;  // as a dimension: the number itself, of a one-element tensor\n\n  // Cuts and compiles.'))
sub('src/bridge/stages.cpp',('  for (const Binding& b : stage.bindings) symbols[b.slot] = table[b.place].size(b.dim);\n','''  bind(stage, table, symbols);
}

void StagedProgram::bind(const Stage& stage, const std::vector<at::Tensor>& table, int64_t* symbols) {
  for (const Binding& b : stage.bindings)
    symbols[b.slot] = b.dim == kNumber ? table[b.place].item<int64_t>() : table[b.place].size(b.dim);
'''),
('  torch::jit::Stack stack;\n  const auto tensor','  torch::jit::Stack stack;\n  const auto tensor'),
('  const auto integer = [&](sym::ExprId e)','''  if (stage.bindings.size() == 1 && stage.bindings[0].dim == kNumber) {  // item(): the tensor is there
    table[stage.made[0]] = tensor(std::get<ValueId>(stage.args[0]));
    return bind(stage, table, symbols);
  }
  const auto integer = [&](sym::ExprId e)'''))
sub('src/bridge/stages.h',('  void check(const Stage& stage','  static void bind(const Stage& stage, const std::vector<at::Tensor>& table, int64_t* symbols);\n  void check(const Stage& stage'))
sub('src/frontend/compiled_function.h',('  bool fullgraph = false;\n','  bool fullgraph = false;\n  bool symbolic_numbers = false;  // item() and tolist() of integers are symbols\n'))
sub('src/frontend/capture_run.cpp',('    bridge::install_capture_kernels();\n','    bridge::install_capture_kernels();\n    capture_->symbolic_numbers = options_.symbolic_numbers;\n'))
s=open('src/python/module.cpp').read()
s=s.replace('bool keep_text, bool auto_dynamic) {','bool keep_text, bool auto_dynamic, bool symbolic_numbers) {').replace('  options.auto_dynamic = auto_dynamic;\n','  options.auto_dynamic = auto_dynamic;\n  options.symbolic_numbers = symbolic_numbers;\n').replace('py::arg("auto_dynamic") = false','py::arg("auto_dynamic") = false,\n        py::arg("symbolic_numbers") = false')
open('src/python/module.cpp','w').write(s)
sub('python/cresset/_api.py',('    "fuse": (True,','    "symbolic_numbers": (\n        False,\n        "item() and tolist() of integer tensors give symbolic numbers, which may be sizes; a branch on one ends the capture",\n    ),\n    "fuse": (True,'))
sub('src/bridge/capture_kernel.cpp',('''    const std::optional<bool> fits = capture_.env().evaluate(pool.eq(sum, total), [] { return current_reason(); });
    if (!fits.value_or(false)) (void)generic_check();
''','''    const std::optional<bool> fits = capture_.env().evaluate(pool.eq(sum, total), [] { return current_reason(); });
    if (fits == false) (void)generic_check();
    if (fits) return;
    capture_.env().assume(pool.eq(sum, total), "the sizes of a split that data gives add up to the dimension");
    for (const sym::ExprId size : sizes)
      capture_.env().assume(pool.ge(size, pool.constant(0)), "the sizes of a split that data gives are not negative");
'''))
sub('tests/python/test_shapes_data.py',('def test_inputs_are_written_after_the_last_stage','''def symbolic(function):
    return cresset.compile(function, options={"symbolic_numbers": True})


def test_numbers_read_from_data_are_sizes():
    def function(x, n):
        k = n.item()
        return torch.cat([x, torch.zeros(k)]) + k

    compiled = symbolic(function)
    for k in (3, 1, 0, 7):
        assert_same_call(function, compiled, torch.randn(4), torch.tensor(k))
    assert cresset.stats()["graphs"] == 1, cresset.stats()["recompiles"]
    with pytest.raises(RuntimeError):
        compiled(torch.randn(4), torch.tensor(-1))


def test_split_by_lengths_in_a_tensor():
    def function(values, lengths):
        return [part.sum(0) * 2 for part in torch.split(values, lengths.tolist())]

    compiled = symbolic(function)
    for lengths in ([2, 3, 1], [0, 1, 5], [1, 0, 0], [4, 4, 4]):
        assert_same_call(function, compiled, torch.randn(sum(lengths), 3), torch.tensor(lengths))
    assert cresset.stats()["graphs"] == 1, cresset.stats()["recompiles"]
    with pytest.raises(RuntimeError):
        compiled(torch.randn(7, 3), torch.tensor([1, 1, 1]))


def test_inputs_are_written_after_the_last_stage'''))

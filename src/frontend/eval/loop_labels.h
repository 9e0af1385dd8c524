// The label of each opcode, by its number; a specialized opcode uses the label of its base opcode. Addresses of labels
// are local to a function, so this is a part of cresset_run_frames.
static void* targets[256];
if (UNLIKELY(targets[255] == NULL)) {
  static void* const base[256] = {
#define X(name, operands, flow) [name] = &&op_##name,
#include CRESSET_OPCODES
#undef X
  };
  for (int i = 0; i < 255; i++) {
    void* target = base[cresset_base_opcode[i]];
    targets[i] = target != NULL ? target : IS_WATCHED_INSTRUCTION(i) ? &&op_watched : &&op_unknown;
  }
  targets[255] = &&op_divert;
}

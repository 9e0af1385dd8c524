// Room for code of cresset where the program may be close to its recursion limit: the room is lent, and taken back.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int given, to_python, to_c;
} CressetRoom;
CressetRoom cresset_eval_give_room(void);
void cresset_eval_take_room(CressetRoom room);

#ifdef __cplusplus
}

namespace cresset::frontend {

class Room {
 public:
  Room() : room_(cresset_eval_give_room()) {}
  ~Room() { cresset_eval_take_room(room_); }
  Room(const Room&) = delete;

 private:
  CressetRoom room_;
};

}  // namespace cresset::frontend
#endif

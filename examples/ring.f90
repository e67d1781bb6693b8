! SPDX-License-Identifier: Apache-2.0
! The ring of ring.c in Fortran: puts with a signal, waits, an all-reduce.   beeline run -n 4 ./ring_fortran
program ring
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit
  use beeline
  implicit none
  integer(c_size_t), parameter :: count = 1000
  type(c_ptr) :: config, world, team, collectives, memory, arrived
  real(c_double), pointer :: inbox(:)
  real(c_double), target :: outbox(count)
  integer(c_int32_t) :: rank, size, next, previous
  integer(c_size_t) :: i

  call require(beeline_config_create(config))
  call require(beeline_config_set(config, "DEADLINE_S" // c_null_char, "20" // c_null_char))
  call require(beeline_world_create(config, world))
  call require(beeline_config_destroy(config))
  team = beeline_world_team(world)
  rank = beeline_team_rank(team)
  size = beeline_team_size(team)
  next = mod(rank + 1, size)
  previous = mod(rank + size - 1, size)

  call require(beeline_allocate(team, 8 * count, beeline_heap_pinned, memory))
  call require(beeline_allocate_signals(team, 1_c_size_t, beeline_heap_pinned, arrived))
  call c_f_pointer(memory, inbox, [count])
  do i = 1, count
    outbox(i) = 1000 * rank + i
  end do
  call require(beeline_put_signal(team, memory, c_loc(outbox), 8 * count, arrived, 1_c_int64_t, next, 0))
  call require(beeline_wait(team, arrived, beeline_greater_equal, 1_c_int64_t, previous, beeline_no_timeout))
  do i = 1, count
    call verify(real(1000 * previous + i, c_double), inbox(i))
  end do
  call require(beeline_flush(team, 0))

  call require(beeline_collectives_create(team, c_null_ptr, collectives))
  call require(beeline_allreduce(collectives, c_loc(outbox), c_loc(outbox), count, beeline_float64, beeline_sum, &
      c_null_ptr))
  do i = 1, count
    call verify(real(1000 * size * (size - 1) / 2 + size * i, c_double), outbox(i))
  end do

  ! A bad argument is refused with a text, before anything is touched.
  if (beeline_put(team, memory, c_loc(outbox), 8_c_size_t, size, 0) /= beeline_invalid_argument) error stop 1
  if (index(beeline_error_text(), "beeline_put: invalid_argument: argument peer: rank") /= 1) error stop 1

  call require(beeline_collectives_destroy(collectives))
  call require(beeline_free(team, arrived))
  call require(beeline_free(team, memory))
  print "('rank ', i0, ' of ', i0, ': verified')", rank, size
  call require(beeline_world_close(world))

contains

  subroutine require(status)
    integer(c_int32_t), intent(in) :: status
    if (status == beeline_ok) return
    write (error_unit, "(a)") beeline_error_text()
    error stop 1
  end subroutine

  subroutine verify(expected, observed)
    real(c_double), intent(in) :: expected, observed
    if (abs(expected - observed) <= 0) return
    write (error_unit, *) "expected", expected, ", observed", observed
    error stop 1
  end subroutine

end program ring

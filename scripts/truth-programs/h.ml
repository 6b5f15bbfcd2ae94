let h = Hashtbl.create 1000
let () = for i = 1 to 250000 do Hashtbl.replace h (string_of_int i) (i, [i; i + 1]) done
let () = Gc.compact (); print_int (Hashtbl.fold (fun _ (i, l) s -> s + i + List.length l) h 0)

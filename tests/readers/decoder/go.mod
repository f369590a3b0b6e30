module nadmit.io/tests/readers/decoder

go 1.24

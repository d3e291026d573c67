if looks_only then
  return nil
end
